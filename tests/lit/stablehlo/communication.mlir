// Tokens in order; what a transfer's attributes say is said of its start, too.
// RUN: heron fmt %s | filecheck %s
// CHECK: %[[S:.*]] = (f32[4]{0}, u32[], token[]) send(%a, %after-all), channel_id=5, is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="here"}
// CHECK: %[[D:.*]] = token[] send-done(%[[S]]), channel_id=5, is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="here"}
// CHECK: %[[R:.*]] = (f32[4]{0}, u32[], token[]) recv(%[[D]]), channel_id=6, is_host_transfer=true
// CHECK: send(%a, %{{.*}}), channel_id=7, frontend_attributes={_xla_send_recv_source_target_pairs={{[{][{]}}0,1}}}
// CHECK: %[[I:.*]] = ((f32[2,3]{0,1}, s32[2]{0}), token[]) infeed(%{{.*}}), infeed_config="in"
// CHECK: f32[3]{0} rng({{.*}}), distribution=rng_uniform
// CHECK: outfeed({{.*}}), outfeed_shape=(f32[4]{0}, s32[2]{0}), outfeed_config="out"
// CHECK: (f32[4]{0}, token[]) while(
module @communication {
  func.func @main(%a: tensor<4xf32>, %b: tensor<2xi32>) -> (tensor<4xf32>, tensor<2xi32>, tensor<2x3xf32>, tensor<3xf32>, tensor<4xf32>) {
    %t = stablehlo.create_token : !stablehlo.token
    %s = "stablehlo.send"(%a, %t) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> {mhlo.frontend_attributes = {_xla_host_transfer_rendezvous = "here"}} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    %r:2 = "stablehlo.recv"(%s) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
    %d = "stablehlo.send"(%a, %r#1) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    %i:3 = "stablehlo.infeed"(%d) <{infeed_config = "in", layout = [[0, 1], [0]]}> : (!stablehlo.token) -> (tensor<2x3xf32>, tensor<2xi32>, !stablehlo.token)
    %o = "stablehlo.outfeed"(%a, %b, %i#2) <{outfeed_config = "out"}> : (tensor<4xf32>, tensor<2xi32>, !stablehlo.token) -> !stablehlo.token
    %w:2 = stablehlo.while(%x = %a, %tok = %o) : tensor<4xf32>, !stablehlo.token
    cond {
      %c = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %z = "stablehlo.outfeed"(%x, %tok) <{outfeed_config = ""}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
      stablehlo.return %x, %z : tensor<4xf32>, !stablehlo.token
    }
    %low = stablehlo.constant dense<0.0> : tensor<f32>
    %high = stablehlo.constant dense<1.0> : tensor<f32>
    %shape = stablehlo.constant dense<3> : tensor<1xi64>
    %g = "stablehlo.rng"(%low, %high, %shape) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
    return %r#0, %i#1, %i#0, %g, %w#0 : tensor<4xf32>, tensor<2xi32>, tensor<2x3xf32>, tensor<3xf32>, tensor<4xf32>
  }
}

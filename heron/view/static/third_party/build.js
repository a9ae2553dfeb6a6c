// Bundles each library into one minified file that begins with the licences of the packages in it, and writes the table
// of versions and digests in README.md.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const rows = [];
for (const name of ["codemirror", "dagre"]) {
  const made = await build({
    entryPoints: [`${name}.entry.js`],
    bundle: true,
    minify: true,
    charset: "utf8",
    format: "iife",
    globalName: name,
    legalComments: "none",
    metafile: true,
    write: false,
  });
  const inputs = Object.keys(made.metafile.inputs).filter((path) => path.startsWith("node_modules/"));
  const packages = [...new Set(inputs.map((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)[1]))].sort();
  const text = `${packages.map(notice).join("\n")}\n${made.outputFiles[0].text}`;
  writeFileSync(`${name}.min.js`, text);
  const digest = createHash("sha256").update(text).digest("hex");
  const list = packages.map((p) => `${p} ${read(p).version}`).join(", ");
  rows.push(`| ${name}.min.js | ${list} | ${[...new Set(packages.map((p) => read(p).license))].join(", ")} | \`${digest}\` |`);
}
const page = readFileSync("README.md", "utf8");
writeFileSync("README.md", page.replace(/(\|---.*\n)(\|.*\n)*/, `$1${rows.join("\n")}\n`));

function read(name) {
  return JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
}

function notice(name) {
  const file = readdirSync(`node_modules/${name}`).find((f) => /^licen[cs]e/i.test(f));
  return `/*! ${name} ${read(name).version}\n\n${readFileSync(`node_modules/${name}/${file}`, "utf8").trim()}\n*/`;
}

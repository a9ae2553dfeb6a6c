"""Hero emitters: each turns a fusion into a kernel around its most demanding instruction, the hero. One file each."""

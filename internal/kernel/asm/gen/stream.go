package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// stream emits a fill with non-temporal stores, which bypass the caches. They are weakly
// ordered, so the function must end with SFENCE: another core that is notified afterwards then
// sees them.
func stream() {
	TEXT("StreamAVX2", NOSPLIT, "func(n int, pattern, dst *byte)")
	Pragma("noescape")
	Doc("StreamAVX2 fills n bytes at dst with a pattern of 32 bytes, and bypasses the caches. n must be a " +
		"positive multiple of 128, and dst must be aligned to 32.")
	n, pattern, dst := pointer("n"), pointer("pattern"), pointer("dst")
	y := YMM()
	VMOVDQU(Mem{Base: pattern}, y)
	Label("stream")
	for i := range 4 {
		VMOVNTDQ(y, Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(Imm(128), dst)
	SUBQ(Imm(128), n)
	JG(LabelRef("stream"))
	SFENCE()
	VZEROUPPER()
	RET()
}

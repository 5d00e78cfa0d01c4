#include "textflag.h"

// Neither Go's assembler nor avo knows the instructions of the matrix unit, AMX (Intel's manual,
// volume 2, LDTILECFG and what follows it). So they are bytes here, with what they are behind them.

// All tiles have 16 rows of 64 bytes.
DATA tiles<>+0x00(SB)/8, $1
DATA tiles<>+0x08(SB)/8, $0
DATA tiles<>+0x10(SB)/8, $0x0040004000400040
DATA tiles<>+0x18(SB)/8, $0x0040004000400040
DATA tiles<>+0x20(SB)/8, $0
DATA tiles<>+0x28(SB)/8, $0
DATA tiles<>+0x30(SB)/8, $0x1010101010101010
DATA tiles<>+0x38(SB)/8, $0
GLOBL tiles<>(SB), RODATA|NOPTR, $64

// func ProductBrainAMX(depth int, panels int, a *byte, lda int, b *byte, step int, c *float32, ldc int)
TEXT ·ProductBrainAMX(SB), NOSPLIT, $0-64
	LEAQ tiles<>(SB), AX
	BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00 // LDTILECFG (AX)
	MOVQ depth+0(FP), R11
	MOVQ panels+8(FP), R12
	MOVQ a+16(FP), R13
	MOVQ lda+24(FP), CX
	MOVQ b+32(FP), R8
	MOVQ c+48(FP), DI
	MOVQ ldc+56(FP), R9
	MOVQ $128, SI

panel:
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc0 // TILEZERO TMM0
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc8 // TILEZERO TMM1
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd0 // TILEZERO TMM2
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd8 // TILEZERO TMM3
	MOVQ R13, AX
	MOVQ CX, DX
	SHLQ $4, DX
	ADDQ R13, DX
	MOVQ R8, BX
	MOVQ R11, R10

deep:
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x24; BYTE $0x08 // TILELOADD (AX)(CX*1), TMM4
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x34; BYTE $0x33 // TILELOADD (BX)(SI*1), TMM6
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x7c; BYTE $0x33; BYTE $0x40 // TILELOADD 64(BX)(SI*1), TMM7
	BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x2c; BYTE $0x0a // TILELOADD (DX)(CX*1), TMM5
	BYTE $0xc4; BYTE $0xe2; BYTE $0x4a; BYTE $0x5c; BYTE $0xc4 // TDPBF16PS TMM6, TMM4, TMM0
	BYTE $0xc4; BYTE $0xe2; BYTE $0x42; BYTE $0x5c; BYTE $0xcc // TDPBF16PS TMM7, TMM4, TMM1
	BYTE $0xc4; BYTE $0xe2; BYTE $0x4a; BYTE $0x5c; BYTE $0xd5 // TDPBF16PS TMM6, TMM5, TMM2
	BYTE $0xc4; BYTE $0xe2; BYTE $0x42; BYTE $0x5c; BYTE $0xdd // TDPBF16PS TMM7, TMM5, TMM3
	ADDQ $64, AX
	ADDQ $64, DX
	ADDQ $2048, BX
	DECQ R10
	JNZ  deep
	MOVQ R9, R10
	SHLQ $4, R10
	ADDQ DI, R10
	BYTE $0xc4; BYTE $0xa2; BYTE $0x7a; BYTE $0x4b; BYTE $0x04; BYTE $0x0f // TILESTORED TMM0, (DI)(R9*1)
	BYTE $0xc4; BYTE $0xa2; BYTE $0x7a; BYTE $0x4b; BYTE $0x4c; BYTE $0x0f; BYTE $0x40 // TILESTORED TMM1, 64(DI)(R9*1)
	BYTE $0xc4; BYTE $0x82; BYTE $0x7a; BYTE $0x4b; BYTE $0x14; BYTE $0x0a // TILESTORED TMM2, (R10)(R9*1)
	BYTE $0xc4; BYTE $0x82; BYTE $0x7a; BYTE $0x4b; BYTE $0x5c; BYTE $0x0a; BYTE $0x40 // TILESTORED TMM3, 64(R10)(R9*1)
	ADDQ $128, DI
	ADDQ step+40(FP), R8
	DECQ R12
	JNZ  panel
	BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0xc0 // TILERELEASE
	RET

// func PairBrainAVX512(rows, columns int, x *byte, ld int, y *byte, ldy int)
TEXT ·PairBrainAVX512(SB), NOSPLIT, $0-48
	MOVQ rows+0(FP), R11
	MOVQ x+16(FP), R8
	MOVQ ld+24(FP), CX
	MOVQ y+32(FP), R9

row:
	MOVQ R8, SI
	MOVQ R9, DI
	MOVQ columns+8(FP), R12

column:
	VPMOVZXWD (SI), Z0
	VPMOVZXWD (SI)(CX*1), Z1
	VPSLLD    $16, Z1, Z1
	VPORD     Z0, Z1, Z1
	VMOVDQU32 Z1, (DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, R12
	JNZ       column
	LEAQ      (R8)(CX*2), R8
	ADDQ      ldy+40(FP), R9
	DECQ      R11
	JNZ       row
	VZEROUPPER
	RET

#include "go_asm.h"
#include "textflag.h"

DATA ·onFaultPC(SB)/8, $onFault<>(SB)
GLOBL ·onFaultPC(SB), NOPTR, $8

// onFault is called by the kernel: DI signal, SI *siginfo, DX *ucontext. See Note [A handler before Go's].
TEXT onFault<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0-0
	MOVQ 16(SI), AX // siginfo.addr
	MOVQ ·watched(SB), CX

look:
	TESTQ CX, CX
	JZ    chain
	MOVQ  AX, R8
	SUBQ  Faults_base(CX), R8
	CMPQ  R8, Faults_size(CX)
	JCS   found
	MOVQ  Faults_next(CX), CX
	JMP   look

found:
	SHRQ  $12, R8
	MOVQ  Faults_table(CX), CX
	MOVQ  (CX)(R8*8), CX
	TESTQ CX, CX
	JZ    chain
	MOVQ  DI, R8
	MOVQ  SI, R9
	MOVQ  DX, R10
	MOVQ  $2, DI // standard error
	MOVQ  0(CX), SI
	MOVQ  8(CX), DX
	MOVQ  $1, AX // write
	SYSCALL
	MOVQ  R8, DI
	MOVQ  R9, SI
	MOVQ  R10, DX

chain:
	MOVQ ·faultNext(SB), AX
	JMP  AX

#include "go_asm.h"
#include "textflag.h"

DATA ·onFaultPC(SB)/8, $onFault<>(SB)
GLOBL ·onFaultPC(SB), NOPTR, $8

// onFault is called by the kernel: R0 signal, R1 *siginfo, R2 *ucontext. See Note [A handler before Go's].
TEXT onFault<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0-0
	MOVD 16(R1), R3 // siginfo.addr
	MOVD ·watched(SB), R4

look:
	CBZ  R4, chain
	MOVD Faults_base(R4), R5
	SUB  R5, R3, R5
	MOVD Faults_size(R4), R6
	CMP  R6, R5
	BLO  found
	MOVD Faults_next(R4), R4
	B    look

found:
	LSR  $12, R5, R5
	MOVD Faults_table(R4), R4
	MOVD (R4)(R5<<3), R4
	CBZ  R4, chain
	MOVD R0, R9
	MOVD R1, R10
	MOVD R2, R11
	MOVD $2, R0 // standard error
	MOVD 0(R4), R1
	MOVD 8(R4), R2
	MOVD $64, R8 // write
	SVC
	MOVD R9, R0
	MOVD R10, R1
	MOVD R11, R2

chain:
	MOVD ·faultNext(SB), R3
	JMP  (R3)

package rules_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/test/testutil"
)

// ways are how a thread adds one to the word at %d1, by how far others see it as one step.
var ways = map[string]string{
	"thread": "ld.volatile.global.u32 %r5, [%d1];\n\tadd.u32 %r5, %r5, 1;\n\tst.volatile.global.u32 [%d1], %r5;",
	"block":  "red.relaxed.cta.global.add.u32 [%d1], 1;",
	"device": "red.relaxed.gpu.global.add.u32 [%d1], 1;",
	"system": "red.relaxed.sys.global.add.u32 [%d1], 1;",
}

// adding is a kernel: each thread adds n times one, in a way, to the word at p of its own number in
// the grid, of which mask leaves some bits.
const adding = `
.visible .entry add_%s(.param .u64 p, .param .u64 mask, .param .u64 n)
{
	.reg .pred %%p<2>;
	.reg .b32 %%r<6>;
	.reg .b64 %%d<6>;
	ld.param.u64 %%d1, [p];
	ld.param.u64 %%d2, [mask];
	ld.param.u64 %%d3, [n];
	mov.u32 %%r1, %%ctaid.x;
	mov.u32 %%r2, %%ntid.x;
	mov.u32 %%r3, %%tid.x;
	mul.lo.u32 %%r4, %%r1, %%r2;
	add.u32 %%r4, %%r4, %%r3;
	cvt.u64.u32 %%d4, %%r4;
	and.b64 %%d4, %%d4, %%d2;
	shl.b64 %%d4, %%d4, 2;
	add.u64 %%d1, %%d1, %%d4;
AGAIN:
	%s
	sub.u64 %%d3, %%d3, 1;
	setp.ne.u64 %%p1, %%d3, 0;
	@%%p1 bra AGAIN;
	ret;
}
`

// toil is a kernel that counts in the word at p to n, which takes some half a microsecond each
// time: every store is seen.
const toil = `
.visible .entry toil(.param .u64 p, .param .u64 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	.reg .b64 %d<3>;
	ld.param.u64 %d1, [p];
	ld.param.u64 %d2, [n];
AGAIN:
	ld.volatile.global.u32 %r1, [%d1];
	add.u32 %r1, %r1, 1;
	st.volatile.global.u32 [%d1], %r1;
	sub.u64 %d2, %d2, 1;
	setp.ne.u64 %p1, %d2, 0;
	@%p1 bra AGAIN;
	ret;
}
`

// text is all kernels.
func text() string {
	var s strings.Builder
	s.WriteString(".version 6.3\n.target sm_70\n.address_size 64\n" + toil)
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		fmt.Fprintf(&s, adding, name, ways[name])
	}
	return s.String()
}

// A kernel is launched on a process's stream.
type kernel struct {
	*process
	f cudriver.Function
}

func (p *process) kernel(name string) kernel {
	m := testutil.Must(p.ModuleLoadData([]byte(text() + "\x00")))
	return kernel{p, testutil.Must(p.ModuleGetFunction(m, name))}
}

func (k kernel) launch(blocks, threads uint32, args ...uint64) {
	var b []byte
	for _, a := range args {
		b = binary.NativeEndian.AppendUint64(b, a)
	}
	testutil.MustNoError(k.LaunchKernel(k.f, [3]uint32{blocks, 1, 1}, [3]uint32{threads, 1, 1}, 0, k.stream, b))
}

// NVIDIA's own assembler has to take the text. scripts/ptxas runs this.
func TestAllTextsAssemble(t *testing.T) {
	ptxas := os.Getenv("SHOAL_PTXAS")
	if ptxas == "" {
		t.Skip("SHOAL_PTXAS names no ptxas: scripts/ptxas has one")
	}
	src := filepath.Join(t.TempDir(), "k.ptx")
	if err := os.WriteFile(src, []byte(text()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"sm_70", "sm_80", "sm_90"} {
		if out, err := exec.CommandContext(t.Context(), ptxas, "-arch="+target, "-o", src+".cubin",
			src).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", target, err, out)
		}
	}
}

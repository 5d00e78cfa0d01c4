package vm_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/cuda/sim/vm"
	"github.com/shoal-mp/shoal/test/testutil"
)

const base = 1 << 40

// kernel makes an entry with some registers of a body, which finds the address of memory in %d0,
// and its thread's in %d1 where it is of 8 bytes.
func kernel(body string) string {
	return `.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 memory) // a comment
{
	.reg .pred %p<4>;
	.reg .b16 %h<4>;
	.reg .b32 %r<16>, %f<8>;
	.reg .b64 %d<16>;
	ld.param.u64 %d0, [memory];
	mov.u32 %r0, %tid.x;
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mad.lo.u32 %r0, %r1, %r2, %r0;
	mad.wide.u32 %d1, %r0, 8, %d0;
` + body + `
}`
}

// run runs a body by n blocks of threads, over memory.
func run(t testing.TB, body string, blocks, threads uint32, memory []uint64) error {
	t.Helper()
	return launch(t, body, vm.Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{threads, 1, 1}}, memory)
}

func launch(t testing.TB, body string, l vm.Launch, memory []uint64) error {
	t.Helper()
	m, err := vm.Parse(kernel(body))
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	b := make([]byte, 8*len(memory))
	for i, v := range memory {
		binary.NativeEndian.PutUint64(b[8*i:], v)
	}
	l.Args, l.Memory = binary.NativeEndian.AppendUint64(nil, base), []vm.Region{{Base: base, Bytes: b}}
	err = m.Entries["k"].Run(l)
	for i := range memory {
		memory[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return err
}

func f32(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }

func f64(v float64) uint64 { return math.Float64bits(v) }

func TestRun_EveryInstruction(t *testing.T) {
	nan := f64(math.NaN())
	minus := func(n int64) uint64 { return uint64(n) }
	for _, c := range []struct {
		code string // of %d2 and %d3
		a, b uint64
		want uint64 // of %d4
	}{
		{"add.s64 %d4, %d2, %d3", 3, minus(-5), minus(-2)},
		{"add.s32 %r4, %r2, %r3; mov.u64 %d4, %r4", 1<<32 - 1, 2, 1},
		{"sub.u64 %d4, %d2, 1", 0, 0, minus(-1)},
		{"mul.lo.s32 %r4, %r2, %r3; mov.b64 %d4, %r4", 1 << 20, 1 << 12, 0},
		{"mul.wide.s32 %d4, %r2, %r3", 1<<32 - 3, 4, minus(-12)},
		{"mul.wide.u32 %d4, %r2, %r3", 1<<32 - 3, 4, 4 * (1<<32 - 3)},
		{"mul.hi.u32 %r4, %r2, %r3; mov.b64 %d4, %r4", 1 << 31, 6, 3},
		{"mul.hi.u64 %d4, %d2, %d3", 1 << 63, 6, 3},
		{"mad.lo.s64 %d4, %d2, %d3, -1", 5, minus(-5), minus(-26)},
		{"div.s64 %d4, %d2, %d3", minus(-7), 2, minus(-3)},
		{"rem.s64 %d4, %d2, %d3", minus(-7), 2, minus(-1)},
		{"rem.u32 %r4, %r2, %r3; mov.b64 %d4, %r4", 7, 0, 7},
		{"min.s64 %d4, %d2, %d3", minus(-7), 2, minus(-7)},
		{"max.u64 %d4, %d2, %d3", minus(-7), 2, minus(-7)},
		{"abs.s64 %d4, %d2", minus(-7), 0, 7},
		{"neg.s32 %r4, %r2; mov.b64 %d4, %r4", 7, 0, 1<<32 - 7},
		{"shl.b32 %r4, %r2, 31; mov.b64 %d4, %r4", 3, 0, 1 << 31},
		{"shl.b32 %r4, %r2, 32; mov.b64 %d4, %r4", 3, 0, 0},
		{"shr.s64 %d4, %d2, 1", minus(-7), 0, minus(-4)},
		{"shr.u64 %d4, %d2, 63", minus(-7), 0, 1},
		{"and.b64 %d4, %d2, 0xff0", 0x1234, 0, 0x230},
		{"or.b64 %d4, %d2, %d3", 5, 2, 7},
		{"xor.b64 %d4, %d2, %d3", 5, 4, 1},
		{"not.b32 %r4, %r2; mov.b64 %d4, %r4", 5, 0, 1<<32 - 6},
		{"add.rn.f32 %f4, %f2, %f3; mov.b64 %d4, %f4", f32(1), f32(math.Ldexp(1, -24)), f32(1)},
		{"add.f64 %d4, %d2, 0d3FF0000000000000", f64(0.5), 0, f64(1.5)},
		{"fma.rn.f64 %d4, %d2, %d3, %d2", f64(3), f64(4), f64(15)},
		{"div.rn.f32 %f4, %f2, %f3; mov.b64 %d4, %f4", f32(1), f32(3), f32(1. / 3)},
		{"div.rz.f64 %d4, %d2, %d3", f64(2), f64(3), f64(2. / 3)},
		{"div.rz.f64 %d4, %d2, %d3", f64(1), f64(10), f64(math.Nextafter(.1, 0))},
		{"sqrt.rn.f64 %d4, %d2", f64(2), 0, f64(math.Sqrt2)},
		{"neg.f64 %d4, %d2", f64(0), 0, 1 << 63},
		{"ex2.approx.f32 %f4, %f2; mov.b64 %d4, %f4", f32(3), 0, f32(8)},
		{"min.f64 %d4, %d2, %d3", nan, f64(2), f64(2)},
		{"max.f64 %d4, %d2, %d3", f64(1), nan, f64(1)},
		{"setp.lt.f64 %p1, %d2, %d3; selp.u64 %d4, 1, 2, %p1", nan, f64(2), 2},
		{"setp.neu.f64 %p1, %d2, %d2; selp.u64 %d4, 1, 2, %p1", nan, 0, 1},
		{"setp.ltu.f64 %p1, %d2, %d3; selp.u64 %d4, 1, 2, %p1", nan, f64(2), 1},
		{"setp.gt.s64 %p1, %d2, %d3; not.pred %p1, %p1; selp.u64 %d4, 1, 2, %p1", 1, minus(-1), 2},
		{"setp.gt.u64 %p1, %d2, %d3; selp.u64 %d4, 1, 2, %p1", 1, minus(-1), 2},
		{"setp.eq.s64 %p1, %d2, 1; setp.eq.s64 %p2, %d3, 1; and.pred %p1, %p1, %p2; selp.u64 %d4, 1, 2, %p1", 1, 3, 2},
		{"cvt.s64.s32 %d4, %r2", 1<<32 - 2, 0, minus(-2)},
		{"cvt.u64.u32 %d4, %r2", 1<<32 - 2, 0, 1<<32 - 2},
		{"cvt.s64.s8 %d4, %d2", 0x1fe, 0, minus(-2)},
		{"cvt.u32.u64 %r4, %d2; mov.b64 %d4, %r4", minus(-2), 0, 1<<32 - 2},
		{"cvt.rn.f64.s64 %d4, %d2", minus(-2), 0, f64(-2)},
		{"cvt.rn.f64.u64 %d4, %d2", 1 << 63, 0, f64(math.Ldexp(1, 63))},
		{"cvt.rn.f32.s64 %f4, %d2; mov.b64 %d4, %f4", 1<<53 + 1<<29 + 1, 0, f32(1<<53) + 1},
		{"cvt.rzi.s64.f64 %d4, %d2", f64(-2.9), 0, minus(-2)},
		{"cvt.rmi.s64.f64 %d4, %d2", f64(-2.1), 0, minus(-3)},
		{"cvt.rzi.s64.f64 %d4, %d2", f64(1e30), 0, math.MaxInt64},
		{"cvt.rzi.s64.f64 %d4, %d2", nan, 0, 1 << 63},
		{"cvt.rzi.s64.f32 %d4, %f2", f32(math.NaN()), 0, 1 << 63},
		{"cvt.rzi.u32.f64 %r4, %d2; mov.b64 %d4, %r4", nan, 0, 1 << 31},
		{"cvt.rzi.s32.f32 %r4, %f2; mov.b64 %d4, %r4", f32(math.NaN()), 0, 0},
		{"cvt.rzi.u64.f64 %d4, %d2", f64(-1), 0, 0},
		{"cvt.rzi.u64.f64 %d4, %d2", f64(math.Ldexp(1, 63)), 0, 1 << 63},
		{"cvt.rzi.s32.f32 %r4, %f2; mov.b64 %d4, %r4", f32(-1e10), 0, 1 << 31},
		{"cvt.rni.f64.f64 %d4, %d2", f64(2.5), 0, f64(2)},
		{"cvt.rpi.f64.f64 %d4, %d2", f64(2.5), 0, f64(3)},
		{"cvt.f64.f32 %d4, %f2", f32(0.1), 0, f64(float64(float32(0.1)))},
		{"cvt.rn.f32.f64 %f4, %d2; mov.b64 %d4, %f4", f64(0.1), 0, f32(0.1)},
	} {
		memory := []uint64{c.a, c.b}
		body := `	ld.global.u64 %d2, [%d0]; ld.global.u64 %d3, [%d0+8]; cvt.u32.u64 %r2, %d2; cvt.u32.u64 %r3, %d3; mov.b32 %f2, %r2; mov.b32 %f3, %r3;
	` + c.code + `; st.global.u64 [%d0], %d4;`
		if err := run(t, body, 1, 1, memory); err != nil || memory[0] != c.want {
			t.Errorf("%s of %#x, %#x: %#x, want %#x, %v", c.code, c.a, c.b, memory[0], c.want, err)
		}
	}
}

func TestRun_HalfFloatsAreThoseOfIEEE(t *testing.T) {
	const body = `ld.global.u64 %d2, [%d1]; cvt.u16.u64 %h0, %d2; cvt.f32.f16 %f0, %h0; cvt.rn.f16.f32 %h1, %f0; cvt.u64.u16 %d2, %h1; st.global.u64 [%d1], %d2;`
	memory := make([]uint64, 1<<16)
	for i := range memory {
		memory[i] = uint64(i)
	}
	if err := run(t, body, 256, 256, memory); err != nil {
		t.Fatal(err)
	}
	for i, got := range memory {
		if i&0x7c00 == 0x7c00 && i&0x3ff != 0 {
			i = 0x7fff // NaN
		}
		if got != uint64(i) {
			t.Fatalf("%#04x became %#04x", i, got)
		}
	}
	for v, want := range map[float64]uint64{1 + 1./2048: 0x3c00, 1 + 3./2048: 0x3c02, 65519: 0x7bff,
		65520: 0x7c00, math.Ldexp(1, -25): 0, math.Ldexp(1.5, -25): 1, -2: 0xc000} {
		memory := []uint64{f64(v)}
		testutil.NoError(t, run(t,
			`ld.global.f64 %d2, [%d0]; cvt.rn.f16.f64 %h0, %d2; cvt.u64.u16 %d2, %h0; st.global.u64 [%d0], %d2;`, 1,
			1, memory))
		if memory[0] != want {
			t.Errorf("%v is %#x, want %#x", v, memory[0], want)
		}
	}
}

// Each thread takes as many turns as its number, by odd and by even ways.
func TestRun_ThreadsThatPartMeetAgain(t *testing.T) {
	const body = `	mov.u64 %d2, 0; mov.u32 %r3, %tid.x;
LOOP: setp.eq.u32 %p1, %r3, 0; @%p1 bra END;
	and.b32 %r4, %r3, 1; setp.ne.u32 %p2, %r4, 0;
	@!%p2 bra EVEN;
	add.u64 %d2, %d2, 100; bra.uni BOTH;
EVEN: add.u64 %d2, %d2, 1;
BOTH: sub.u32 %r3, %r3, 1; bra LOOP;
END: setp.gt.u32 %p3, %r0, 90; @%p3 ret;
	st.global.u64 [%d1], %d2;`
	memory := make([]uint64, 96)
	testutil.NoError(t, run(t, body, 2, 48, memory))
	for i, got := range memory {
		n := uint64(i % 48)
		want := n/2 + (n+1)/2*100
		if i > 90 {
			want = 0
		}
		if got != want {
			t.Errorf("thread %d counts %d, want %d", i, got, want)
		}
	}
}

const reversing = `	.shared .align 8 .b8 pad[16];
	.shared .u64 row[100];
	mov.u32 %%r3, %%tid.x; mov.u64 %%d2, row; mad.wide.u32 %%d3, %%r3, 8, %%d2;
	cvt.u64.u32 %%d4, %%r0; st.shared.u64 [%%d3], %%d4;
	%s
	sub.u32 %%r3, 99, %%r3; mad.wide.u32 %%d3, %%r3, 8, %%d2; ld.shared.u64 %%d4, [%%d3]; st.global.u64 [%%d1], %%d4;`

// That the second half is wrong without the barrier shows that warps do not go in step.
func TestRun_ABarrierLetsAllWarpsSeeSharedMemory(t *testing.T) {
	with, without := make([]uint64, 300), make([]uint64, 300)
	testutil.NoError(t, run(t, fmt.Sprintf(reversing, "bar.sync 0;"), 3, 100, with))
	testutil.NoError(t, run(t, fmt.Sprintf(reversing, ""), 3, 100, without))
	stale := 0
	for i := range with {
		if want := uint64(i/100*100 + 99 - i%100); with[i] != want {
			t.Errorf("thread %d read %d, want %d", i, with[i], want)
		}
		if without[i] != with[i] {
			stale++
		}
	}
	if stale == 0 {
		t.Error("a barrier that is missing is not found")
	}
}

// What one warp has written another one, behind it or before it, sees only behind a barrier; and
// the threads of a warp go by themselves if they are let.
func TestRun_TheOrderOfThreadsVaries(t *testing.T) {
	const first, last = "0", "99"
	const passing = `	.shared .u64 word;
	mov.u64 %%d2, word; mov.u32 %%r3, %%tid.x; setp.ne.u32 %%p1, %%r3, %s; mov.u64 %%d3, 0; @!%%p1 bra WRITE; bra.uni READ;
WRITE: mov.u64 %%d4, 7; st.shared.u64 [%%d2], %%d4;
READ: %s ld.shared.u64 %%d5, [%%d2]; st.global.u64 [%%d1], %%d5; %s
	st.shared.u64 [%%d2], %%d3;`
	for _, writer := range []string{first, last} {
		for _, threads := range []uint32{100, 32} {
			if writer == last && threads == 32 {
				continue
			}
			for _, loose := range []bool{false, true} {
				l := vm.Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{threads, 1, 1}, Loose: loose}
				with, without := make([]uint64, 4*threads), make([]uint64, 4*threads)
				testutil.NoError(t, launch(t, fmt.Sprintf(passing, writer, "bar.sync 0;", "bar.sync 0;"), l, with))
				testutil.NoError(t, launch(t, fmt.Sprintf(passing, writer, "", "bar.sync 0;"), l, without))
				stale := 0
				for i := range with {
					if with[i] != 7 {
						t.Errorf("written by %s, thread %d of %d reads %d", writer, i, threads, with[i])
					}
					if without[i] != 7 {
						stale++
					}
				}
				if found := stale > 0; found != (threads > 32 || loose) {
					t.Errorf("written by %s of %d threads, loose %v: %d read something else", writer, threads,
						loose, stale)
				}
			}
		}
	}
}

func TestRun_AtomicsLoseNothing(t *testing.T) {
	memory := []uint64{0, f64(0.5), uint64(5 | 7<<32), uint64(6 | 8<<32), 10, 0}
	testutil.NoError(t, run(t, `	red.relaxed.sys.global.add.u64 [%d0], 2;
	red.global.add.f64 [%d0+8], 0d3FF0000000000000;
	atom.global.max.s32 %r3, [%d0+32], %r0;
	atom.global.cas.b64 %d2, [%d0+40], 0, 77;
	setp.ne.u32 %p1, %r0, 0; @%p1 ret;
	ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d0+16];
	st.global.v2.u32 [%d0+16], {%r6, %r5};`, 100, 70, memory))
	want := []uint64{14000, f64(7000.5), uint64(8 | 6<<32), uint64(6 | 8<<32), 6999, 77}
	for i := range want {
		if memory[i] != want[i] {
			t.Errorf("word %d: %#x, want %#x", i, memory[i], want[i])
		}
	}
}

func TestRun_FaultsAreErrors(t *testing.T) {
	for _, c := range []struct {
		body string
		want vm.Fault
	}{
		{"ld.global.u64 %d2, [%d0+64];", vm.Fault{Address: base + 64, Size: 8, Kind: vm.IllegalAddress}},
		{"ld.global.u32 %r2, [%d0-4];", vm.Fault{Address: base - 4, Size: 4, Kind: vm.IllegalAddress}},
		{"st.global.u32 [%d0+2], 0;", vm.Fault{Address: base + 2, Size: 4, Kind: vm.MisalignedAddress}},
		{"ld.global.v2.u64 {%d2, %d3}, [%d0+8];", vm.Fault{Address: base + 8, Size: 16, Kind: vm.MisalignedAddress}},
		{".shared .u32 s; ld.shared.u32 %r2, [s+4];", vm.Fault{Address: 4, Size: 4, Kind: vm.IllegalAddress}},
		{".shared .u32 s; mov.u64 %d2, s; red.shared.add.u32 [%d2+8], 1;",
			vm.Fault{Address: 8, Size: 4, Kind: vm.IllegalAddress}},
		{"ld.param.u64 %d2, [memory+8];", vm.Fault{Address: 8, Size: 8, Kind: vm.IllegalAddress}},
	} {
		c.want.Entry, c.want.Line = "k", 16
		fault, ok := errors.AsType[*vm.Fault](run(t, c.body, 1, 1, make([]uint64, 8)))
		if !ok || *fault != c.want {
			t.Errorf("%s: %v, want %v", c.body, fault, &c.want)
		}
	}
	const parted = "setp.lt.u32 %p1, %r0, 5; @%p1 bar.sync 0;"
	if fault, ok := errors.AsType[*vm.Fault](run(t, parted, 1, 40, make([]uint64, 8))); !ok ||
		fault.Kind != vm.PartedBarrier {
		t.Errorf("a barrier for five threads: %v", fault)
	}
	m, err := vm.Parse(kernel("st.global.u64 [%d0], 1;"))
	testutil.NoError(t, err)
	l := vm.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1},
		Args: binary.NativeEndian.AppendUint64(nil, base)}
	l.Memory = []vm.Region{{Base: base, Bytes: make([]byte, 8), ReadOnly: true}}
	if fault, ok := errors.AsType[*vm.Fault](m.Entries["k"].Run(l)); !ok || fault.Kind != vm.IllegalAddress {
		t.Errorf("a store to memory that is only to be read: %v", fault)
	}
	for _, bad := range []func(l *vm.Launch){
		func(l *vm.Launch) { l.Args = l.Args[:4] },
		func(l *vm.Launch) { l.Grid[1] = 0 },
		func(l *vm.Launch) { l.Grid[2] = 1 << 16 },
		func(l *vm.Launch) { l.Block = [3]uint32{64, 32, 1} },
		func(l *vm.Launch) { l.Block[2] = 65 },
	} {
		l := l
		bad(&l)
		if err := m.Entries["k"].Run(l); !errors.Is(err, vm.ErrLaunch) {
			t.Errorf("%v %v: %v", l.Grid, l.Block, err)
		}
	}
}

func TestParse_NamesWhatIsNotKnown(t *testing.T) {
	for body, want := range map[string]string{
		"frobnicate.u32 %r1, %r2;":                  "frobnicate",
		"add.rz.f32 %f1, %f2, %f3;":                 ".rz",
		"add.f16 %h1, %h2, %h3;":                    "add",
		"add.u32 %r1, %r99, %r2;":                   "%r99",
		"add.u32 %r1, %r2;":                         `","`,
		"add.u32 %r1, %r2, %r3, %r4;":               `";"`,
		"add.u32 7, %r2, %r3;":                      `"7"`,
		"add.f32 %f1, %f2, 1;":                      "type",
		"add.f32 %f1, %f2, 0f3F8;":                  "type",
		"mov.u32 %r1, %clock;":                      "%clock",
		"bra NOWHERE;":                              "NOWHERE",
		"A: A: ret;":                                `label "A" again`,
		"bar.sync 1;":                               "bar.sync 0",
		"ld.u32 %r1, [%d0];":                        "without a space",
		"ld.global.v2.u32 {%r1, %r2, %r3}, [%d0];":  `"}"`,
		"atom.global.add.u16 %r1, [%d0], 1;":        "2 bytes",
		"red.global.inc.u32 [%d0], 1;":              "inc",
		"ld.shared.u32 %r1, [memory];":              "another space",
		".reg .b32 %r1;":                            `"%r1" again`,
		".reg .b32 %z<99999>;":                      "99999",
		".shared .b8 s[50000];":                     "50000",
		".shared .align 3 .b8 s[5];":                "alignment 3",
		".local .b8 s[5];":                          ".local",
		"cvt.u32.pred %r1, %p1;":                    "cvt",
		"@%p1 ret":                                  `";"`,
		"ret; } .visible .entry k() { ret;":         `"k" again`,
		"ret; } .func f() { ret;":                   ".func",
		"\"":                                        "character",
		"ld.param.u64 %d1, [memory]; mov.u64 %d1 [": `","`,
	} {
		_, err := vm.Parse(kernel(body))
		failed, ok := errors.AsType[*vm.SyntaxError](err)
		if !ok || !strings.Contains(failed.Reason, want) || failed.Line < 16 {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if _, err := vm.Parse(kernel("")[:300]); err == nil {
		t.Error("half a text")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(kernel(fmt.Sprintf(reversing, "bar.sync 0;")))
	f.Add(kernel("@!%p1 bra E; E: red.global.add.f32 [%d0+8], 0f3F800000;"))
	f.Fuzz(func(t *testing.T, text string) {
		_, err := vm.Parse(text)
		if _, ok := err.(*vm.SyntaxError); err != nil && !ok {
			t.Errorf("%v", err)
		}
	})
}

func BenchmarkRun(b *testing.B) {
	const turns, perTurn = 1000, 8
	m, err := vm.Parse(kernel(fmt.Sprintf(`mov.u32 %%r3, %d; ld.global.f32 %%f1, [%%d1];
LOOP: fma.rn.f32 %%f2, %%f1, %%f1, %%f2; add.f32 %%f3, %%f2, %%f1; ld.global.f32 %%f1, [%%d1]; add.s64 %%d3, %%d2, 4; and.b32 %%r4, %%r3, 3;
	sub.u32 %%r3, %%r3, 1; setp.ne.u32 %%p1, %%r3, 0; @%%p1 bra LOOP;`, turns)))
	testutil.NoError(b, err)
	memory := make([]byte, 8*256*8)
	for b.Loop() {
		testutil.NoError(b, m.Entries["k"].Run(vm.Launch{Grid: [3]uint32{8, 1, 1}, Block: [3]uint32{256, 1, 1},
			Args: binary.NativeEndian.AppendUint64(nil, base), Memory: []vm.Region{{Base: base, Bytes: memory}}}))
	}
	b.ReportMetric(float64(b.N)*8*256*turns*perTurn/1e6/b.Elapsed().Seconds(), "Minstr/s")
}

//go:build amd64 || arm64

package cublas_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/internal/cuda/cublas"
	"github.com/shoal-mp/shoal/internal/dl"
	"github.com/shoal-mp/shoal/test/standin"
)

func TestBLAS_EachCallReachesCAsItWasMeant(t *testing.T) { callEach(t) }

// With the types of NVIDIA's own header the stand-in sees the same, so it has them right.
func TestBLAS_EachCallIsNVIDIAs(t *testing.T) { callEach(t, standin.Vendor(t, "cublas_v2.h")...) }

func callEach(t *testing.T, flags ...string) {
	so := standin.Compile(t, "testdata/standin.c", flags...)
	b, err := cublas.Load("libthereisnone.so.1", so)
	if err != nil || b.Name() != so {
		t.Fatal(b, err)
	}
	lib, err := dl.Open(so)
	if err != nil {
		t.Fatal(err)
	}
	note, err := lib.Symbol("standin_note")
	if err != nil {
		t.Fatal(err)
	}
	fail, err := lib.Symbol("standin_fail")
	if err != nil {
		t.Fatal(err)
	}
	sees := func(err error, want string) {
		t.Helper()
		if got := cublas.CString(note); got != want || err != nil {
			t.Errorf("C saw %q, %v; want %q", got, err, want)
		}
	}
	h, err := b.Create()
	if sees(err, "cublasCreate"); h != 0x7a0000000001 {
		t.Errorf("handle %#x", h)
	}
	sees(b.SetStream(h, 0x1b0000000002), "cublasSetStream 0x7a0000000001 0x1b0000000002")
	sees(b.Destroy(h), "cublasDestroy 0x7a0000000001")
	g := cublas.Gemm{M: 2, N: 3, K: 4, Beta: 0.5, Batch: 7,
		A: cublas.Matrix{Ptr: 0xfedcba9876543210, Leading: 11, Stride: 1<<40 + 1, Turned: true},
		B: cublas.Matrix{Ptr: 0xf123456789abcdef, Leading: 12, Stride: 1<<40 + 2},
		C: cublas.Matrix{Ptr: 0xffedcba987654321, Leading: 13, Stride: 1<<40 + 3}}
	for of, compute := range map[cublas.Type]int{cublas.Float32: 68, cublas.Float64: 70, cublas.Float16: 68,
		cublas.BFloat16: 68} {
		g.Type = of
		sees(b.GemmStridedBatched(h, g), fmt.Sprintf("cublasGemmStridedBatchedEx 0x7a0000000001 1 0 2 3 4 1 "+
			"0xfedcba9876543210 %d 11 1099511627777 0xf123456789abcdef %[1]d 12 1099511627778 0.5 "+
			"0xffedcba987654321 %[1]d 13 1099511627779 7 %d -1", of, compute))
	}

	dl.Call(fail, uintptr(cublas.InvalidValue))
	err = b.GemmStridedBatched(h, g)
	if failed, ok := errors.AsType[*cublas.Error](err); !ok || failed.Call != "cublasGemmStridedBatchedEx" ||
		!errors.Is(err, cublas.InvalidValue) {
		t.Errorf("a call that fails: %v", err)
	}
}

func TestLoad_RefusesAnotherLibrary(t *testing.T) {
	if _, err := cublas.Load("libthereisnone.so.1"); !errors.Is(err, dl.ErrNotLoaded) {
		t.Errorf("no library: %v", err)
	}
	if _, err := cublas.Load("libc.so.6"); !errors.Is(err, dl.ErrNoSymbol) {
		t.Errorf("another library: %v", err)
	}
}

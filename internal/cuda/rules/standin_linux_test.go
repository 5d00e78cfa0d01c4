//go:build amd64 || arm64

package rules_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/test/standin"
)

// NCCL is bound for questions that only several devices answer, so a library in C looks at the
// arguments.
func TestNCCL_IsCalledAsItWasMeant(t *testing.T) { callNCCL(t) }

// With the types of NCCL's own header the stand-in sees the same, so it has them right.
func TestNCCL_IsCalledAsItsHeaderHasIt(t *testing.T) { callNCCL(t, standin.Vendor(t, "nccl.h")...) }

func callNCCL(t *testing.T, flags ...string) {
	t.Setenv("SHOAL_NCCL", standin.Compile(t, "testdata/nccl.c", flags...))
	lib, err := openNCCL()
	if err != nil {
		t.Fatal(err)
	}
	comms, err := lib.initAll([]int32{3, 5})
	if err != nil {
		t.Fatal(err)
	}
	words := []cudriver.Ptr{0xfedcba9876543210, 0xf123456789abcdef}
	if err := lib.sum(words, comms, []cudriver.Stream{0x1a0000000001, 0x1a0000000002}); err != nil {
		t.Error(err)
	}
	if err := lib.destroy(comms); err != nil {
		t.Error(err)
	}
	want := "init 2: 3 5\nstart\n" +
		"reduce fedcba9876543210 fedcba9876543210 1 7 0 0x7a0000000000 0x1a0000000001\n" +
		"reduce f123456789abcdef f123456789abcdef 1 7 0 0x7a0000000001 0x1a0000000002\n" +
		"end\ndestroy 0x7a0000000000\ndestroy 0x7a0000000001\n"
	if got := lib.note(); got != want {
		t.Errorf("C saw\n%s\nwant\n%s", got, want)
	}
	if got := lib.version(); got != "NCCL 22703" {
		t.Error(got)
	}
	if _, err := lib.initAll([]int32{7, 7}); err == nil || err.Error() != "ncclCommInitAll: result 5" {
		t.Errorf("two ranks on one device: %v", err)
	}
}

package tensor_test

import (
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

// here makes a domain that of this process until the test ends.
func here(t *testing.T, debug string) *arena.Domain {
	t.Helper()
	t.Setenv("SHOAL_DEBUG", debug)
	before := arena.Current()
	d, err := arena.New(arena.Options{Budget: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	arena.SetDefault(d)
	t.Cleanup(func() {
		arena.SetDefault(before)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestShared_IsDescribedWhereAProgramIsDebugged(t *testing.T) {
	for _, debug := range []string{"", "lifetime"} {
		d := here(t, debug)
		made, err := tensor.NewShared(tensor.Float32, 3, 5)
		if err != nil {
			t.Fatal(err)
		}
		part := made.Narrow(0, 0, 1)
		if err := part.Share(); err != nil { // is shared, and of the whole
			t.Fatal(err)
		}
		raw, err := tensor.NewShared(tensor.Uint8, 4*7*9) // as a batch is made
		if err != nil {
			t.Fatal(err)
		}
		view, err := raw.Storage().View(tensor.Float32, []int{7, 9}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		moved := tensor.New(tensor.Int64, 100, 100)
		if err := moved.Share(); err != nil {
			t.Fatal(err)
		}
		ones := make([]int, 48)
		for i := range ones {
			ones[i] = 1
		}
		long, err := tensor.NewShared(tensor.Uint8, ones...)
		if err != nil {
			t.Fatal(err)
		}
		s := d.Observe().Summary
		if debug == "" {
			if s.Shapes != nil || s.DTypes != nil || s.Largest[0].DType != "" {
				t.Errorf("without debugging: %+v", s)
			}
		} else {
			var got []string
			for _, c := range s.Shapes {
				got = append(got, c.DType+" "+c.Shape)
			}
			want := "int64 [100 100]; float32 [3 5]; float32 [7 9]; uint8 [1 1 1"
			if all := strings.Join(got, "; "); !strings.HasPrefix(all, want) || len(all) > 200 || len(got) != 4 {
				t.Errorf("%q, want %q", all, want)
			}
			if c := s.DTypes["int64"]; len(s.DTypes) != 3 || c.Blocks != 1 || c.Bytes < 80_000 {
				t.Errorf("%+v", s.DTypes)
			}
			if b := s.Largest[0]; b.DType != "int64" || b.Shape != "[100 100]" ||
				!strings.Contains(b.Stack, "describe_linux_test.go") {
				t.Errorf("%+v", b)
			}
		}
		for _, x := range []*tensor.Tensor{made, part, raw, view, moved, long} {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
		if s := d.Observe().Summary; len(s.Shapes) != 0 {
			t.Errorf("after all are closed: %+v", s.Shapes)
		}
	}
}

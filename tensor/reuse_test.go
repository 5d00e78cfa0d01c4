package tensor

import (
	"errors"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
)

// inDomain makes a domain of this process alone the default.
func inDomain(t *testing.T, size int) *arena.Domain {
	t.Helper()
	d, err := arena.NewLocal(size)
	if err != nil {
		t.Fatal(err)
	}
	arena.SetDefault(d)
	t.Cleanup(func() {
		arena.SetDefault(nil)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestStorage_IsToldFromItsLifeBefore has a tensor used while it is closed: what is under way meets
// the storage with another block, and must find that out.
func TestStorage_IsToldFromItsLifeBefore(t *testing.T) {
	inDomain(t, 1<<20)
	for range 1000 {
		x, err := NewShared(Float32, 4)
		if err != nil {
			t.Fatal(err)
		}
		underWay := x.borrowView(x.Shape(), x.Strides(), 0)
		s := x.store()
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		y, err := NewShared(Float32, 4)
		if err != nil {
			t.Fatal(err)
		}
		again := y.store() == s
		for what, use := range map[string]func(){
			"reads": func() { underWay.Sum() },
			"views": func() { underWay.T() },
			"shares": func() {
				if err := underWay.Share(); errors.Is(err, ErrClosed) {
					panic(err)
				}
			},
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("what is under way %s a storage of another life (the same: %v)", what, again)
					}
				}()
				use()
			}()
		}
		if y.Sum() != 0 {
			t.Fatal("another tensor was changed")
		}
		if err := y.Close(); err != nil {
			t.Fatal(err)
		}
		if again {
			return
		}
	}
	t.Error("no storage was used again")
}

// TestStorage_OfABlockThatArrivesWhileItCloses takes references of blocks while others close the
// tensors that have them.
func TestStorage_OfABlockThatArrivesWhileItCloses(t *testing.T) {
	d := inDomain(t, 1<<20)
	const rounds = 3000
	arriving := make(chan arena.Handle, 4)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(arriving)
		for i := range rounds {
			x, err := EmptyShared(Int64, 8)
			if err != nil {
				t.Error(err)
				return
			}
			x.Fill(float64(i))
			l, _ := x.store().mem.Load().block()
			for range 2 { // the receivers' references
				err = errors.Join(err, d.Retain(l.block))
				arriving <- l.block
			}
			if err = errors.Join(err, x.Close()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 4 {
		wg.Go(func() {
			for h := range arriving {
				s, err := adoptBlock(d, h)
				if err != nil {
					t.Error(err)
					return
				}
				y := newTensor(s, Int64, []int{8}, []int{1}, 0)
				first := At[int64](y, 0)
				for i, v := range Data[int64](y) {
					if v != first {
						t.Errorf("element %d is %d beside %d", i, v, first)
					}
				}
				if l, _ := s.mem.Load().block(); l.block != h {
					t.Errorf("%v came as %v", h, l.block)
				}
				if err := y.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := d.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

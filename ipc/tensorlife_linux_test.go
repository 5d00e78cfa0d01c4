package ipc_test

import (
	"testing"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// BenchmarkTensorLife makes a tensor of 64 bytes, puts it into a queue, gets it, and closes both.
func BenchmarkTensorLife(b *testing.B) {
	q, err := ipc.NewQueue[*tensor.Tensor](8)
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	b.ReportAllocs()
	for b.Loop() {
		t, err := tensor.EmptyShared(tensor.Uint8, 64)
		if err != nil {
			b.Fatal(err)
		}
		if err := q.Put(b.Context(), t); err != nil {
			b.Fatal(err)
		}
		got, err := q.Get(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		t.Close()
		got.Close()
	}
}

// BenchmarkTensorMove is the same with the sender's tensor closed before the receiver has it, as it
// is when the two are different processes.
func BenchmarkTensorMove(b *testing.B) {
	q, err := ipc.NewQueue[*tensor.Tensor](8)
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	b.ReportAllocs()
	for b.Loop() {
		t, err := tensor.EmptyShared(tensor.Uint8, 64)
		if err != nil {
			b.Fatal(err)
		}
		if err := q.Put(b.Context(), t); err != nil {
			b.Fatal(err)
		}
		t.Close()
		got, err := q.Get(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		got.Close()
	}
}

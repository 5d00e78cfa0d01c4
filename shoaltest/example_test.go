package shoaltest_test

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
)

// In a package's tests this is its TestMain: func TestMain(m *testing.M) { shoaltest.TestMain(m) }.
func ExampleTestMain() {
	var m *testing.M // given by the testing package
	main := func() { shoaltest.TestMain(m) }
	_ = main
}

var double = shoal.Register("double", func(ctx context.Context, rank int, q *ipc.Queue[int]) error {
	n, err := q.Get(ctx)
	if err != nil {
		return err
	}
	return q.Put(ctx, 2*n)
})

// A test of a function that runs in another process.
func ExampleNoLeaks() {
	test := func(t *testing.T) {
		shoaltest.NoLeaks(t)
		q, err := ipc.NewQueue[int](1)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if err := q.Put(t.Context(), 21); err != nil {
			t.Fatal(err)
		}
		if err := double.Spawn(t.Context(), 1, q); err != nil {
			t.Fatal(err)
		}
		if n, err := q.Get(t.Context()); n != 42 || err != nil {
			t.Errorf("%d, %v, want 42", n, err)
		}
	}
	_ = test
}

package reader

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/pickle/value"
)

func TestRegister(t *testing.T) {
	class := value.Named("some.module.Set")
	if _, ok := Find(class); ok {
		t.Fatal("a class without a reader has one")
	}
	Register(class, Reader{Collate: func(samples []any) (any, error) { return len(samples), nil }})
	r, ok := Find(class)
	if n, err := r.Collate(make([]any, 3)); !ok || n != 3 || err != nil {
		t.Errorf("got %v, %v, %v", n, err, ok)
	}
	if got, want := Names(), []string{"Set"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second reader of a class is accepted")
		}
	}()
	Register(class, Reader{})
}

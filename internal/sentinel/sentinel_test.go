package sentinel_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/shoal-mp/shoal/internal/sentinel"
)

func TestNew_WrapsItsKindWithoutItsText(t *testing.T) {
	a, b := sentinel.New("queue is closed", os.ErrClosed), sentinel.New("queue is closed", os.ErrClosed)
	if a.Error() != "queue is closed" || !errors.Is(a, os.ErrClosed) || errors.Is(a, os.ErrExist) {
		t.Errorf("got %q, which wraps os.ErrClosed: %t", a, errors.Is(a, os.ErrClosed))
	}
	if errors.Is(a, b) {
		t.Error("two errors with one text are the same error")
	}
	if wrapped := fmt.Errorf("put: %w", a); !errors.Is(wrapped, a) || !errors.Is(wrapped, os.ErrClosed) {
		t.Errorf("%v loses its kind", wrapped)
	}
}

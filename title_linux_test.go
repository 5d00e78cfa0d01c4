package shoal_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/shoal-mp/shoal"
)

var titled = shoal.Register("titled", func(_ context.Context, rank int, _ struct{}) error {
	b, err := os.ReadFile("/proc/self/comm")
	if want := fmt.Sprintf("titled %d\n", rank); err == nil && string(b) != want {
		err = fmt.Errorf("this process is called %q, want %q", b, want)
	}
	return err
})

func TestProcess_IsCalledByItsFunctionAndRank(t *testing.T) {
	if err := titled.Spawn(t.Context(), 2, struct{}{}); err != nil {
		t.Error(err)
	}
}

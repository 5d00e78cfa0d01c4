package torch

import (
	"context"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
)

// TestStore_ACallMayEndAsItsContextDoes has a context end when the reply has just come. The next
// call takes the same connection.
func TestStore_ACallMayEndAsItsContextDoes(t *testing.T) {
	ctx := testContext(t)
	server := testutil.Value(ServeStore(ctx, "127.0.0.1:0", StoreOptions{}))(t)
	defer server.Close()
	s := testutil.Value(DialStore(ctx, server.Addr(), StoreOptions{}))(t)
	defer s.Close()
	short, cancel := context.WithCancel(ctx)
	err := s.runSteps(short, storeStep{func(r *storeRequest) { r.appendQuery(queryNumKeys) }, func(r storeReply) error {
		_, err := r.readNumber()
		cancel()
		time.Sleep(20 * time.Millisecond)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NumKeys(ctx); err != nil {
		t.Error(err)
	}
}

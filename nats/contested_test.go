package nats_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A broker has forgotten the signs of life of a receiver, and gives the value to another one. Only
// the first to acknowledge it does so, however many have it.
func TestDelivery_OfSeveralReceiversOneAcknowledges(t *testing.T) {
	for _, c := range []struct {
		name  string
		order [3]int
	}{{"the late one", [3]int{0, 1, 2}}, {"the second", [3]int{1, 0, 2}}, {"the third", [3]int{2, 1, 0}}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it waits
			ctx := testutil.Context(t)
			b := start(t, broker.Options{})
			nc, err := client.Connect(b.URL())
			testutil.NoError(t, err)
			defer nc.Close()
			o := nats.QueueOptions{AckWait: 2 * time.Second, MaxDeliveries: 10}
			var have []*nats.Delivery[int]
			for i := range 3 {
				q := open[int](t, connect(t, b.URL()), "contested", o)
				if i == 0 {
					testutil.NoError(t, q.Put(ctx, 7))
				} else {
					forget(t, nc, i)
				}
				d, err := q.Next(ctx)
				testutil.NoError(t, err)
				have = append(have, d)
			}
			time.Sleep(time.Second) // a first receiver that is early need not ask
			for i, of := range c.order {
				err := have[of].Ack(ctx)
				if i == 0 {
					testutil.NoError(t, err)
				} else if !errors.Is(err, nats.ErrExpired) || errors.Is(err, nats.ErrUncertain) {
					t.Errorf("receiver %d, after %d, acknowledges with %v", of, c.order[0], err)
				}
			}
			q := open[int](t, connect(t, b.URL()), "contested", o)
			if s := count(t, q); s != (nats.QueueStats{}) {
				t.Errorf("the broker keeps %+v", s)
			}
		})
	}
}

// forget has the broker take the value of the queue from its receiver, which does not hear of it.
func forget(t *testing.T, nc *client.Conn, attempt int) {
	t.Helper()
	info := fmt.Sprintf("%d.1.%d.0.0", attempt, attempt)
	testutil.NoError(t, nc.Publish("$JS.ACK.SHOAL_Q_contested.consumers."+info, []byte("-NAK")))
	testutil.NoError(t, nc.Flush())
}

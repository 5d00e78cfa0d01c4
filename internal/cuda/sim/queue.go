package sim

import (
	"os"
	"strconv"
	"time"
)

// Note [Hardware queues] A device has a few queues for all streams of a context: eight, or as many
// as CUDA_DEVICE_MAX_CONNECTIONS says, up to 32. A queue does what it was given in order, whichever
// streams it is of: behind a stream that waits for a number stands all that other streams of the
// same queue were given later. CUDA calls that a false dependency. What is to end a wait must not
// stand in a queue.

// connections is how many queues there are where the environment does not say, and most is how
// many there can be.
const (
	connections     = 8
	mostConnections = 32
	connectionsKey  = "CUDA_DEVICE_MAX_CONNECTIONS"
)

// depth is how many entries a queue takes before a call that gives it more has to wait: a launch is
// one.
const depth = 1024

// A hardwareQueue is one of those of a context.
type hardwareQueue struct {
	tasks chan task
	over  chan struct{} // closed at the end of the context
}

// openQueues starts the queues of a context.
func (d *Driver) openQueues(c *context) {
	n, err := strconv.Atoi(os.Getenv(connectionsKey))
	if err != nil || n < 1 {
		n = connections
	}
	over := make(chan struct{})
	for range min(n, mostConnections) {
		l := hardwareQueue{make(chan task, depth), over}
		c.queues = append(c.queues, l)
		go d.run(c, l)
	}
}

// nextQueue returns the queue of the next stream: they take turns.
func (c *context) nextQueue() hardwareQueue {
	l := c.queues[c.given%len(c.queues)]
	c.given++
	return l
}

// closeQueues ends the queues, and what they have not done.
func (c *context) closeQueues() { close(c.queues[0].over) }

func (d *Driver) run(c *context, l hardwareQueue) {
	for {
		select {
		case <-l.over:
			return
		case t := <-l.tasks:
			for !d.try(c, t) {
				select {
				case <-l.over:
					return
				case <-time.After(tick):
				}
			}
		}
	}
}

// take queues a task, and waits where there is no room.
func (l hardwareQueue) take(t task) {
	give := func(t task) {
		select {
		case l.tasks <- t:
		case <-l.over:
		}
	}
	for range t.entries - 1 {
		give(task{})
	}
	give(t)
}

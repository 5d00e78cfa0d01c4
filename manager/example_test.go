package manager_test

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/manager"
)

func Example() {
	ctx := context.Background()
	m, err := manager.New(ctx) // on goroutines of this process; Start gives it a process of its own
	if err != nil {
		panic(err)
	}
	defer m.Close()
	scores, err := manager.NewDict[string, float64](ctx, m) // a proxy, which travels to other processes
	if err != nil {
		panic(err)
	}
	defer scores.Close()
	for range 2 {
		if _, err := scores.Add(ctx, "a", 0.5); err != nil { // one call, so no addition is lost
			panic(err)
		}
	}
	fmt.Println(scores.Get(ctx, "a"))
	// Output: 1 <nil>
}

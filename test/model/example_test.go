package model_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/test/model"
)

// A waiter that parks without looking at the ring again can sleep for ever, and the explorer finds
// how.
func ExampleExplore() {
	sound := model.Explore(model.Wake{Messages: [2]int{1, 1}}.Model(), 10_000_000)
	broken := model.Explore(model.Wake{Messages: [2]int{1, 1}, Bug: model.NoLook}.Model(), 10_000_000)
	fmt.Println(sound.Complete, sound.Err)
	fmt.Println(broken.Err != nil, len(broken.Trace))
	// Output:
	// true <nil>
	// true 7
}

package sim

import (
	"fmt"
	"time"
)

// TimesKey is the environment variable that sets a simulated driver's [Times]. Child processes
// inherit it.
const TimesKey = "SHOAL_CUDA_SIMULATE_TIMES"

// Times holds the delays of operations that are slow on a GPU. They are 0 unless [TimesKey] is set.
type Times struct {
	Init    time.Duration // cuInit
	Context time.Duration // creation of a context
	Load    time.Duration // compilation of a kernel
}

// String returns the corresponding value of [TimesKey]: three numbers of nanoseconds.
func (t Times) String() string { return fmt.Sprint(int64(t.Init), int64(t.Context), int64(t.Load)) }

func timesOf(text string) (t Times) {
	if n, err := fmt.Sscan(text, &t.Init, &t.Context, &t.Load); text != "" && (err != nil || n != 3) {
		panic(fmt.Sprintf("sim: %s is %q: %v", TimesKey, text, err))
	}
	return t
}

package sim

import (
	"fmt"
	"time"
)

// TimesKey is the environment variable of a simulated driver's Times, by which children have those
// of the process that made the devices.
const TimesKey = "SHOAL_CUDA_SIMULATE_TIMES"

// Times are how long a driver takes for what takes long on a GPU. Nothing takes long unless
// TimesKey says so.
type Times struct {
	Init    time.Duration // cuInit
	Context time.Duration // a context that is made
	Load    time.Duration // a kernel that is translated
}

// String returns what TimesKey is set to.
func (t Times) String() string { return fmt.Sprint(int64(t.Init), int64(t.Context), int64(t.Load)) }

func timesOf(text string) (t Times) {
	if n, err := fmt.Sscan(text, &t.Init, &t.Context, &t.Load); text != "" && (err != nil || n != 3) {
		panic(fmt.Sprintf("sim: %s is %q: %v", TimesKey, text, err))
	}
	return t
}

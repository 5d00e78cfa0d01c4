package kernel

// States is how many states of a generator are moved on at once.
const States = 8

// Congruence moves states on, of generators of 128 bits, by a rule: each is multiplied by a factor,
// and an increment is added. to gets a number of each of them, again and again, as PCG XSL RR makes
// it of a state. The upper halves of the states come first, and so do those of factor and
// increment. It returns how many numbers it has written: on a machine with instructions for it all
// but the last few, on others none.
func Congruence(states *[2 * States]uint64, rule *[4]uint64, to []uint64) int {
	n := len(to) &^ (States - 1)
	if current.congruence == nil || n == 0 {
		return 0
	}
	for i, m := range short(n) {
		current.congruence(m, &states[0], &rule[0], &to[i])
	}
	return n
}

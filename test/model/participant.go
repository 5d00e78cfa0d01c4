package model

// life is what the other participants can know of a process. killed is a death that no other has
// noticed.
type life uint8

const (
	alive life = iota
	killed
	marked // a reaper has marked it dead, and is not done with it
	reaped // the seat of the process is free
)

// A process is the state that every model with deaths has of each of its processes.
type process struct{ life life }

func (p process) lives() bool    { return p.life == alive }
func (p process) is(l life) bool { return p.life == l }

// dead reports whether the others know that the process has died.
func (p process) dead() bool { return p.life == marked || p.life == reaped }

// reap is the next step of a reaper that does one process after the other. It marks the dead
// process, and then frees its seat.
func (p *process) reap() bool {
	if p.life != killed && p.life != marked {
		return false
	}
	p.life++
	return true
}

// A participant is a process in a seat that may be taken again. Its epoch says how often the seat
// was taken.
type participant struct {
	process
	epoch uint8
}

// gone reports whether the participant that had this seat in the epoch is known to be dead.
func (p participant) gone(epoch uint8) bool { return p.dead() || p.epoch != epoch }

// A toll counts how often an event has happened, up to the number that a configuration allows.
type toll uint8

// kill kills a process that lives, if a kill is left. The model decides what else of its state is
// lost.
func (n *toll) kill(p *process, most int) bool {
	if !p.lives() || int(*n) >= most {
		return false
	}
	p.life = killed
	*n++
	return true
}

// rejoin puts a new participant into a free seat, if one may come.
func (n *toll) rejoin(p *participant, most int) bool {
	if p.life != reaped || int(*n) >= most {
		return false
	}
	*p = participant{epoch: p.epoch + 1}
	*n++
	return true
}

// withLife returns the processes with this life, as bits.
func withLife[T interface{ is(life) bool }](all []T, l life) (set uint8) {
	for i := range all {
		if all[i].is(l) {
			set |= 1 << i
		}
	}
	return set
}

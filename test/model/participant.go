package model

// life is the state of a process as far as other participants can know it. killed is a death that
// no other participant has noticed.
type life uint8

const (
	alive life = iota
	killed
	marked // marked dead by a reaper that has not finished
	reaped // the seat of the process is free
)

// A process is the common state of processes in all models with deaths. The zero process lives.
type process struct{ life life }

func (p process) lives() bool    { return p.life == alive }
func (p process) is(l life) bool { return p.life == l }

// dead reports whether the other participants know that the process has died.
func (p process) dead() bool { return p.life == marked || p.life == reaped }

// reap performs the next step of a reaper that handles one process after another: it marks the
// dead process, and then frees its seat. It returns false if the process lives or is reaped
// already.
func (p *process) reap() bool {
	if p.life != killed && p.life != marked {
		return false
	}
	p.life++
	return true
}

// A participant is a process in a seat that may be reused. The epoch counts the uses of the seat.
type participant struct {
	process
	epoch uint8
}

// gone reports whether the participant that had this seat in the given epoch is known to be dead.
func (p participant) gone(epoch uint8) bool { return p.dead() || p.epoch != epoch }

// A toll counts the events of one kind, such as kills, up to the limit of a configuration.
type toll uint8

// kill kills a living process and returns true. It returns false if most kills have been counted
// or the process is dead. The caller must discard the process's local state.
func (n *toll) kill(p *process, most int) bool {
	if !p.lives() || int(*n) >= most {
		return false
	}
	p.life = killed
	*n++
	return true
}

// rejoin puts a new participant into a free seat and returns true. It returns false if most have
// been counted or the seat is not free.
func (n *toll) rejoin(p *participant, most int) bool {
	if p.life != reaped || int(*n) >= most {
		return false
	}
	*p = participant{epoch: p.epoch + 1}
	*n++
	return true
}

// withLife returns a bit set of the processes in the given state of life.
func withLife[T interface{ is(life) bool }](all []T, l life) (set uint8) {
	for i := range all {
		if all[i].is(l) {
			set |= 1 << i
		}
	}
	return set
}

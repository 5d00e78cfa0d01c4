package main

import (
	"math"

	"github.com/shoal-mp/shoal/tensor"
)

// A cartPole is a simulated pole on a cart that must be balanced by pushing the cart to the left or
// right: the problem of Barto, Sutton and Anderson (1983) with the constants of Gym's CartPole-v1.
// Its state is the cart's position and velocity and the pole's angle and angular velocity.
type cartPole struct {
	state [4]float32
	steps int
	rand  *tensor.Generator
}

const (
	gravity   = 9.8
	poleMass  = 0.1
	allMass   = 1 + poleMass
	half      = 0.5 // of the pole's length
	push      = 10.0
	tick      = 0.02 // seconds
	maxX      = 2.4
	maxAngle  = 12 * math.Pi / 180
	maxReturn = 500 // steps until an episode is truncated
)

// reset starts an episode near the upright position.
func (c *cartPole) reset() {
	for i := range c.state {
		c.state[i] = float32(c.rand.Float64()*0.1 - 0.05)
	}
	c.steps = 0
}

// step pushes the cart to the left (action 0) or right (1) for one tick and returns true if the
// pole fell. Each step has a reward of 1.
func (c *cartPole) step(action int64) (fell bool) {
	x, v, angle, spin := float64(c.state[0]), float64(c.state[1]), float64(c.state[2]), float64(c.state[3])
	force := push * float64(2*action-1)
	sin, cos := math.Sincos(angle)
	common := (force + poleMass*half*spin*spin*sin) / allMass
	spinUp := (gravity*sin - cos*common) / (half * (4./3 - poleMass*cos*cos/allMass))
	speedUp := common - poleMass*half*spinUp*cos/allMass
	x, v, angle, spin = x+tick*v, v+tick*speedUp, angle+tick*spin, spin+tick*spinUp
	c.state = [4]float32{float32(x), float32(v), float32(angle), float32(spin)}
	c.steps++
	return math.Abs(x) > maxX || math.Abs(angle) > maxAngle
}

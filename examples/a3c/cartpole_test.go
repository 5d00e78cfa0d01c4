package main

import (
	"math"
	"testing"
)

// TestCartPoleMovesAsThatOfGym repeats steps of CartPole-v1, recorded in float64.
func TestCartPoleMovesAsThatOfGym(t *testing.T) {
	var c cartPole
	for i, s := range []struct {
		action int64
		want   [4]float64
	}{
		{1, [4]float64{0, 0.1951219512195122, 0, -0.29268292682926833}},
		{1, [4]float64{0.0039024390243902443, 0.3902439024390244, -0.005853658536585367, -0.5853658536585367}},
		{0, [4]float64{0.011707317073170733, 0.19520443149030264, -0.017560975609756102, -0.2945326253197778}},
	} {
		if c.step(s.action) {
			t.Fatal("it fell")
		}
		for k, v := range c.state {
			if math.Abs(float64(v)-s.want[k]) > 1e-6 {
				t.Errorf("after step %d: %v, want %v", i, c.state, s.want)
				break
			}
		}
	}
	for !c.step(1) {
	}
	if c.steps != 11 || math.Abs(float64(c.state[2])) < maxAngle {
		t.Errorf("pushed to one side, it fell after %d steps: %v", c.steps, c.state)
	}
}

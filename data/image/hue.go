package image

import "math"

// adjustHue rotates the hue by a fraction of its circle, -0.5 to 0.5. Hue, saturation and value
// are rounded to bytes, as in Pillow. An image with one plane is unchanged.
func (im *Image) adjustHue(by float64) {
	if im.C == 1 {
		return
	}
	turn := uint8(int(by * 255))
	r, g, b := im.plane(0), im.plane(1), im.plane(2)
	for i := range r {
		h, s, v := toHSV(r[i], g[i], b[i])
		r[i], g[i], b[i] = fromHSV(h+turn, s, v)
	}
}

func toHSV(r, g, b uint8) (h, s, v uint8) {
	most, least := max(r, g, b), min(r, g, b)
	if most == least {
		return 0, 0, most
	}
	span := float32(most - least)
	red, green, blue := float32(most-r)/span, float32(most-g)/span, float32(most-b)/span
	var hue float32
	switch most {
	case r:
		hue = blue - green
	case g:
		hue = float32(2 + float64(red) - float64(blue))
	default:
		hue = float32(4 + float64(green) - float64(red))
	}
	hue = float32(math.Mod(float64(hue)/6+1, 1))
	return uint8(float64(hue) * 255), uint8(float64(span/float32(most)) * 255), most
}

func fromHSV(h, s, v uint8) (r, g, b uint8) {
	if s == 0 {
		return v, v, v
	}
	hue := float64(h) * 6 / 255
	sector := math.Floor(hue)
	f, sat := float32(hue-sector), float32(s)/255
	part := func(x float64) uint8 { return uint8(max(0, min(255, math.Round(float64(v)*x)))) }
	p, q, t := part(1-float64(sat)), part(1-float64(sat*f)), part(1-float64(float64(sat)*(1-float64(f))))
	switch int(sector) % 6 {
	case 0:
		return v, t, p
	case 1:
		return q, v, p
	case 2:
		return p, v, t
	case 3:
		return p, q, v
	case 4:
		return t, p, v
	default:
		return v, p, q
	}
}

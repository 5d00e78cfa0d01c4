package datasets

import "github.com/shoal-mp/shoal/internal/codec"

// A type must be passed to Custom before a type that contains it is registered, so all
// registrations are here.
func init() {
	codec.Custom((*List).marshal, (*List).unmarshal)
	codec.Custom((*Map).marshal, (*Map).unmarshal)
	codec.RegisterType[*ImageFolder]("data.ImageFolder")
	codec.RegisterType[*hdf5Rows]("datasets.hdf5Rows")
	codec.RegisterType[ImageDecoder]("data.ImageDecoder")
	codec.RegisterType[*shards]("datasets.shards")
}

package kernel

// LoadAtomic atomically reads an element that may be changed concurrently by [AxpyAtomic] or
// [SGDAtomic].
func LoadAtomic[F Float](p *F) F { return loadAtomic(p) }

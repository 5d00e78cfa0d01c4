package kernel

// LoadAtomic reads an element that others change at the same time by [AxpyAtomic] or [SGDAtomic].
func LoadAtomic[F Float](p *F) F { return loadAtomic(p) }

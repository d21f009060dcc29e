package qwen35

/*
#include "qwen35.h"
*/
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

// short makes a call that computes nothing.
func (s *Session) short(call func() C.qwen_status) error {
	_, err := do(call)
	runtime.KeepAlive(s)
	return err
}

// Fork makes an independent session of the same model that stands where this one does. What is
// computed is shared, the random stream is its own, callbacks are not copied.
func (s *Session) Fork(m *Model) (*Session, error) {
	var handle *C.qwen_session
	err := s.short(func() C.qwen_status { return C.qwen_session_fork(s.c(), &handle) })
	if err != nil {
		return nil, err
	}
	return own(m, handle)
}

// Mark keeps the present position for Rewind; nothing is computed. It gives the mark's name.
func (s *Session) Mark() (uint64, error) {
	var mark C.uint64_t
	err := s.short(func() C.qwen_status { return C.qwen_session_mark(s.c(), &mark) })
	return uint64(mark), err
}

// Unmark drops a mark.
func (s *Session) Unmark(mark uint64) error {
	return s.short(func() C.qwen_status { return C.qwen_session_unmark(s.c(), C.uint64_t(mark)) })
}

// Rewind goes back to a mark, bit for bit; nothing is computed. With random the random stream
// goes back too, so that the same calls give the same tokens.
func (s *Session) Rewind(mark uint64, random bool) error {
	var flags C.uint32_t
	if random {
		flags = C.QWEN_REWIND_RANDOM
	}
	return s.short(func() C.qwen_status {
		return C.qwen_session_rewind(s.c(), C.uint64_t(mark), flags)
	})
}

// Truncate cuts the sequence to its first tokens. It gives how many were computed again for
// that.
func (s *Session) Truncate(ctx context.Context, position int) (int, error) {
	var computed C.size_t
	_, err := s.run(ctx, func() C.qwen_status {
		return C.qwen_session_truncate(s.c(), C.size_t(position), &computed)
	})
	return int(computed), err
}

// Save saves the session to a file, which is replaced at once. Restored, it goes on bit for bit.
func (s *Session) Save(path string) error {
	data, length := text(path)
	defer runtime.KeepAlive(path)
	return s.short(func() C.qwen_status {
		return C.qwen_session_save_file(s.c(), data, length, 0)
	})
}

// Restore puts the session where a saved one of the same model was.
func (s *Session) Restore(path string) error {
	data, length := text(path)
	defer runtime.KeepAlive(path)
	return s.short(func() C.qwen_status {
		return C.qwen_session_restore_file(s.c(), data, length)
	})
}

// SaveBytes does the same as Save, to memory.
func (s *Session) SaveBytes() ([]byte, error) {
	var needed C.size_t
	err := s.short(func() C.qwen_status {
		return C.qwen_session_save_memory(s.c(), 0, nil, 0, &needed)
	})
	if err != nil {
		return nil, err
	}
	state := make([]byte, int(needed))
	err = s.short(func() C.qwen_status {
		return C.qwen_session_save_memory(s.c(), 0, unsafe.Pointer(&state[0]), needed, &needed)
	})
	return state, err
}

// RestoreBytes does the same as Restore, from memory.
func (s *Session) RestoreBytes(state []byte) error {
	var data unsafe.Pointer
	if len(state) > 0 {
		data = unsafe.Pointer(&state[0])
	}
	return s.short(func() C.qwen_status {
		return C.qwen_session_restore_memory(s.c(), data, C.size_t(len(state)))
	})
}

// Statistics are counts, seconds, bytes and tokens per second: see qwen_statistics in qwen35.h.
type Statistics struct {
	Sessions                                int
	InputTokens, OutputTokens               uint64
	ReusedTokens, CachedTokens              uint64
	InputSeconds, OutputSeconds, FirstToken float64
	Bytes                                   uint64
	InputRate, OutputRate                   float64
}

func statistics(call func(*C.qwen_statistics) C.qwen_status) (Statistics, error) {
	raw := C.qwen_statistics{struct_size: C.uint32_t(unsafe.Sizeof(C.qwen_statistics{}))}
	_, err := do(func() C.qwen_status { return call(&raw) })
	return Statistics{
		Sessions:    int(raw.sessions),
		InputTokens: uint64(raw.input_tokens), OutputTokens: uint64(raw.output_tokens),
		ReusedTokens: uint64(raw.reused_tokens), CachedTokens: uint64(raw.cached_tokens),
		InputSeconds:  float64(raw.input_us) / 1e6,
		OutputSeconds: float64(raw.output_us) / 1e6,
		FirstToken:    float64(raw.first_token_us) / 1e6,
		Bytes:         uint64(raw.bytes),
		InputRate:     float64(raw.input_rate), OutputRate: float64(raw.output_rate),
	}, err
}

// Statistics says what the session has done since it was made.
func (s *Session) Statistics() (Statistics, error) {
	defer runtime.KeepAlive(s)
	return statistics(func(to *C.qwen_statistics) C.qwen_status {
		return C.qwen_session_get_statistics(s.c(), to)
	})
}

// Statistics says what all sessions, the closed ones too, have done since the model was opened.
func (m *Model) Statistics() (Statistics, error) {
	defer runtime.KeepAlive(m)
	return statistics(func(to *C.qwen_statistics) C.qwen_status {
		return C.qwen_model_get_statistics(m.c(), to)
	})
}

package qwen35

/*
#include <stdlib.h>
#include "qwen35.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Preset is where sampling starts from; see qwen_preset in qwen35.h.
type Preset int32

// The presets.
const (
	PresetChat     Preset = C.QWEN_PRESET_CHAT
	PresetGreedy   Preset = C.QWEN_PRESET_GREEDY
	PresetThinking Preset = C.QWEN_PRESET_THINKING
	PresetPrecise  Preset = C.QWEN_PRESET_PRECISE
)

// Sampling is a preset and what replaces its values; nil keeps the preset's.
type Sampling struct {
	Preset                                               Preset
	Temperature, TopP, MinP                              *float32
	RepetitionPenalty, PresencePenalty, FrequencyPenalty *float32
	TopK, PenaltyWindow                                  *uint32
	Seed                                                 *uint64
	// Added to logits; minus infinity bans a token.
	LogitBias map[int32]float32
}

// Some makes the pointer that a field of Sampling wants: Some[float32](0.7).
func Some[T any](value T) *T { return &value }

// Greedy always takes the most likely token.
func Greedy() *Sampling { return &Sampling{Preset: PresetGreedy} }

// SetSampling chooses tokens so from now on.
func (s *Session) SetSampling(sampling *Sampling) error {
	raw := C.qwen_sampling_options{
		struct_size: C.uint32_t(unsafe.Sizeof(C.qwen_sampling_options{})),
		preset:      C.qwen_preset(sampling.Preset),
	}
	for _, field := range []struct {
		bit   C.uint32_t
		to    *C.float
		value *float32
	}{
		{C.QWEN_SET_TEMPERATURE, &raw.temperature, sampling.Temperature},
		{C.QWEN_SET_TOP_P, &raw.top_p, sampling.TopP},
		{C.QWEN_SET_MIN_P, &raw.min_p, sampling.MinP},
		{C.QWEN_SET_REPETITION_PENALTY, &raw.repetition_penalty, sampling.RepetitionPenalty},
		{C.QWEN_SET_PRESENCE_PENALTY, &raw.presence_penalty, sampling.PresencePenalty},
		{C.QWEN_SET_FREQUENCY_PENALTY, &raw.frequency_penalty, sampling.FrequencyPenalty},
	} {
		if field.value != nil {
			raw.set |= field.bit
			*field.to = C.float(*field.value)
		}
	}
	if sampling.TopK != nil {
		raw.set |= C.QWEN_SET_TOP_K
		raw.top_k = C.uint32_t(*sampling.TopK)
	}
	if sampling.PenaltyWindow != nil {
		raw.set |= C.QWEN_SET_PENALTY_WINDOW
		raw.penalty_window = C.uint32_t(*sampling.PenaltyWindow)
	}
	if sampling.Seed != nil {
		raw.set |= C.QWEN_SET_SEED
		raw.seed = C.uint64_t(*sampling.Seed)
	}
	if count := len(sampling.LogitBias); count > 0 {
		// Memory of Go must not point to memory of Go when C gets it.
		size := unsafe.Sizeof(C.qwen_logit_bias{})
		memory := C.malloc(C.size_t(count) * C.size_t(size))
		defer C.free(memory)
		entries := unsafe.Slice((*C.qwen_logit_bias)(memory), count)
		i := 0
		for token, bias := range sampling.LogitBias {
			entries[i] = C.qwen_logit_bias{token: C.int32_t(token), bias: C.float(bias)}
			i++
		}
		raw.logit_bias = (*C.qwen_logit_bias)(memory)
		raw.logit_bias_count = C.size_t(count)
	}
	_, err := do(func() C.qwen_status { return C.qwen_session_set_sampling(s.c(), &raw) })
	runtime.KeepAlive(s)
	return err
}

// A conversation: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]. Ctrl-C cancels an answer.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"libqwen35/qwen35"
)

func number(at, otherwise int) int {
	if len(os.Args) <= at {
		return otherwise
	}
	value, err := strconv.Atoi(os.Args[at])
	if err != nil {
		fail(err)
	}
	return value
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "chat:", err)
	os.Exit(1)
}

func main() {
	if len(os.Args) < 2 || len(os.Args) > 4 {
		fmt.Fprintln(os.Stderr, "usage: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]")
		os.Exit(2)
	}
	most, percent := number(2, 64), number(3, 70)
	model, err := qwen35.Open(os.Args[1], nil)
	if err != nil {
		fail(err)
	}
	defer model.Close()
	session, err := model.NewSession(0, &qwen35.Sampling{
		Preset:      qwen35.PresetGreedy, // no penalties
		Temperature: qwen35.Some(float32(percent) / 100),
		TopK:        qwen35.Some[uint32](40),
	})
	if err != nil {
		fail(err)
	}
	defer session.Close()
	chat := qwen35.Chat{EnableThinking: qwen35.Some(false)}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		chat.Messages = append(chat.Messages, qwen35.Message{Role: "user", Content: input.Text()})
		answer := ""
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		_, _, err := session.FeedChat(ctx, chat)
		if err == nil {
			_, err = session.Stream(ctx, most, func(piece string) error {
				fmt.Print(piece)
				answer += piece
				return nil
			})
		}
		stop()
		if err != nil && !errors.Is(err, context.Canceled) {
			fail(err)
		}
		fmt.Println()
		chat.Messages = append(chat.Messages, qwen35.Message{Role: "assistant", Content: answer})
	}
}

/** Asks the person at the terminal for input. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { Failure } from '../command-failure.ts'

export interface Ask {
  /** Whether somebody is there to answer. */
  readonly isPossible: boolean
  /** Resolves with the answer; a secret one is not echoed. */
  question(text: string, options?: { isSecret?: boolean }): Promise<string>
}

export function processAsk(): Ask {
  return {
    isPossible: process.stdin.isTTY === true && process.stdout.isTTY === true,
    async question(text, { isSecret = false } = {}) {
      const silence = new Writable({ write: (_chunk, _encoding, done) => done() })
      const output = isSecret ? silence : process.stdout
      const reader = createInterface({ input: process.stdin, output, terminal: true })
      // After the reader is created: it redraws its line, and would erase a question that was printed before.
      if (isSecret) process.stdout.write(text)
      const cancelled = Promise.withResolvers<never>()
      reader.once('SIGINT', () => cancelled.reject(new Failure('nothing was changed')))
      try {
        return (await Promise.race([reader.question(isSecret ? '' : text), cancelled.promise])).trim()
      } finally {
        reader.close()
        if (isSecret) process.stdout.write('\n')
      }
    },
  }
}

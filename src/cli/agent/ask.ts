/** Asks the person at the terminal. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { Failure } from '../failure.ts'

export interface Ask {
  /** Whether somebody is there to answer. */
  readonly isPossible: boolean
  /** An answer; a secret one is not shown as it is typed. */
  question(text: string, options?: { isSecret?: boolean }): Promise<string>
}

export function processAsk(): Ask {
  return {
    isPossible: process.stdin.isTTY === true && process.stdout.isTTY === true,
    async question(text, { isSecret = false } = {}) {
      const silence = new Writable({ write: (_chunk, _encoding, done) => done() })
      const output = isSecret ? silence : process.stdout
      const reader = createInterface({ input: process.stdin, output, terminal: true })
      // Not before the reader is there, and not beside it: it draws its line anew and would erase the question.
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

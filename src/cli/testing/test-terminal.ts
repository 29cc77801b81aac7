/** A terminal for tests: keeps what is printed. */
import type { Terminal } from '../terminal.ts'

export interface TestTerminal extends Terminal {
  readonly printed: { out: string; err: string }
}

export function testTerminal(given: Partial<Terminal> & { input?: string } = {}): TestTerminal {
  const { input = '', ...rest } = given
  const printed = { out: '', err: '' }
  return {
    printed,
    out(text) {
      printed.out += text
    },
    err(text) {
      printed.err += text
    },
    isTTY: false,
    env: {},
    cwd: import.meta.dirname,
    readInput: async () => input,
    openLines: () => ({
      write(lines) {
        printed.out += lines
      },
      flush: async () => {},
    }),
    onOutFailed() {},
    ...rest,
  }
}

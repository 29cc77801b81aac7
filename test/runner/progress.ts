/** Prints a run: a dot for each file that ended, and between them whole texts. */

export interface Progress {
  readonly dot: () => void
  readonly print: (text: string) => void
}

export function showProgress(write: (text: string) => void = (text) => process.stdout.write(text)): Progress {
  let isInDots = false
  return {
    dot() {
      isInDots = true
      write('.')
    },
    print(text) {
      write(isInDots ? `\n${text}` : text)
      isInDots = false
    },
  }
}

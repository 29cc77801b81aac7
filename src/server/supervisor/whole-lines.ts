/** Passes on the output of a child in whole lines, so that the lines of several children never mix. */
import { StringDecoder } from 'node:string_decoder'

/** Longest line, in characters; a longer one is split, so that a child cannot fill the supervisor's memory. */
const MAX_LINE_CHARACTERS = 256 * 1024

/** The parts of a child's output that are used here. */
interface OutputStream {
  on(event: 'data', heard: (chunk: Buffer) => void): unknown
  on(event: 'end' | 'error', heard: () => void): unknown
}

/** `write` gets one or more whole lines at a time, each with its line end; an unfinished last line gets one too. */
export function passLines(stream: OutputStream, write: (lines: string) => void): void {
  const decoder = new StringDecoder('utf8')
  let begun = ''
  stream.on('data', (chunk) => {
    const text = begun + decoder.write(chunk)
    const end = text.lastIndexOf('\n') + 1
    begun = text.slice(end)
    if (end > 0) write(text.slice(0, end))
    if (begun.length > MAX_LINE_CHARACTERS) finish()
  })
  const finish = (): void => {
    if (begun !== '') write(`${begun}\n`)
    begun = ''
  }
  stream.on('end', () => {
    begun += decoder.end()
    finish()
  })
  stream.on('error', finish)
}

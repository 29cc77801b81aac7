/** Completes the word before the caret of an editor. */
import type { PolicyWord } from './api-outline.ts'

/** The most offers at once. */
const MOST = 8

export interface Completion {
  /** The part of the text that an offer replaces. */
  readonly from: number
  readonly to: number
  readonly offers: readonly PolicyWord[]
}

/** The words that complete the one before `caret`; none before a word is begun. */
export function completionAt(text: string, caret: number, words: readonly PolicyWord[]): Completion {
  const before = text.slice(0, caret)
  const isAction = /\btype["']?:\s*["']?[\w-]*$/.test(before)
  const [begun = ''] = (isAction ? /[\w-]*$/ : /[\w.]*$/).exec(before) ?? []
  const method = /\.\w*$/.exec(begun)?.[0] ?? ''
  const fitting = words.filter(({ word, what }) => {
    if (isAction) return what === 'action' && word.startsWith(begun) && word !== begun
    if (what === 'action' || begun === '') return false
    if (word.startsWith('.')) return method !== '' && word.startsWith(method) && word !== method
    return word.startsWith(begun) && word !== begun
  })
  // Fields of what was typed come before methods, which fit any value.
  const offers = fitting.toSorted((a, b) => depth(a, begun) - depth(b, begun)).slice(0, MOST)
  return { from: caret - begun.length, to: caret, offers }
}

function depth({ word }: PolicyWord, begun: string): number {
  if (word.startsWith('.')) return 100
  return word.slice(begun.length).split('.').length
}

/** The text with an offer accepted, and the caret after it. */
export function complete(text: string, { from, to }: Completion, { word, what }: PolicyWord) {
  const begun = text.slice(from, to)
  // A method replaces only what follows the last dot.
  const start = word.startsWith('.') ? from + begun.lastIndexOf('.') : from
  const taken = what === 'function' ? `${word}(` : word
  return { text: `${text.slice(0, start)}${taken}${text.slice(to)}`, caret: start + taken.length }
}

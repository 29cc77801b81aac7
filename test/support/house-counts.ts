/** Counts the house: its rooms, the arrows between them, and its lines of code. */
import { arrowsOf, roomsOf } from './arrows.ts'
import { unusedExports } from './exports.ts'
import { readSources } from './sources.ts'

/** What a budget of `house.budget.json` is kept for. */
export interface HouseCounts {
  readonly 'entries in src': number
  readonly rooms: number
  /** Between rooms, without those into what everything may use. */
  readonly arrows: number
  readonly 'code lines': number
  readonly 'exports that nothing else uses': number
}

const EVERYBODYS = ['lib', 'model']

export function countHouse(): HouseCounts {
  const sources = readSources('src')
  const product = new Map([...sources].filter(([file]) => !/\.test\.tsx?$|\/testing\//.test(file)))
  const users = new Map([...sources, ...['test', 'bench', 'build'].flatMap((folder) => [...readSources(folder)])])
  return {
    'entries in src': new Set([...sources.keys()].map((file) => file.split('/')[1])).size,
    rooms: roomsOf(sources).length,
    arrows: arrowsOf(sources).filter(([, to]) => !EVERYBODYS.includes(to)).length,
    'code lines': [...product.values()].reduce((sum, text) => sum + codeLines(text), 0),
    'exports that nothing else uses': unusedExports(sources, users).length,
  }
}

/** Lines that are neither blank nor comment. */
export function codeLines(text: string): number {
  const bare = text.replace(/^\s*\/\*[\s\S]*?\*\//gm, '')
  return bare.split('\n').filter((line) => !/^\s*(\/\/.*)?$/.test(line)).length
}

if (import.meta.main) console.table(countHouse())

/** A page of the documentation: its fenced blocks in their order, and how a test uses each. */
import { readFileSync } from 'node:fs'

/**
 * The mark after the language of a block says how a test uses it. Readers do not see it.
 *
 *     ```sh                     runs in the shell of the page, after all blocks before it
 *     ```sh stays               runs in a terminal of its own until the page is over
 *     ```sh each                each line runs in a terminal of its own until it is ready, and is then stopped
 *     ```sh not-run: <reason>   cannot run in a test, and is listed with its reason
 *     ```text shown             must be, line by line, in the output so far; `…` is anything
 *     ```yaml file=<name>       is saved under this name, for the commands that follow
 */
export interface Block {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly use: 'run' | 'stays' | 'each' | 'shown' | 'file' | 'not-run'
  /** The name of the file, or the reason why it is not run. */
  readonly about: string
  readonly text: string
}

export function readPage(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

export function blocksOf(page: string, text: string = readPage(page)): Block[] {
  return [...text.matchAll(/^( *)```([^\n`]*)\n(.*?)^ *```$/gms)].map(
    ({ 1: indent = '', 2: info = '', 3: body = '', index }) => {
      const line = text.slice(0, index).split('\n').length
      const [language = '', ...marks] = info.split(' ')
      const block = { page, line, language, text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), '') }
      return { ...block, ...useOf(marks.join(' '), `${page}:${line}`) }
    },
  )
}

function useOf(mark: string, where: string): Pick<Block, 'use' | 'about'> {
  if (mark === '') return { use: 'run', about: '' }
  if (mark === 'stays' || mark === 'each' || mark === 'shown') return { use: mark, about: '' }
  const [, name] = /^file=([\w.-]+)$/.exec(mark) ?? []
  if (name !== undefined) return { use: 'file', about: name }
  const [, reason] = /^not-run: (\S.*)$/.exec(mark) ?? []
  if (reason !== undefined) return { use: 'not-run', about: reason }
  throw new Error(`${where}: \`${mark}\` is not a mark of a block`)
}

/** Keeps code and docs to the words of docs/vocabulary.md. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { readSources } from './support/sources.ts'
import { type BannedWord, findBanned } from './support/words.ts'

const vocabulary = readFileSync('docs/vocabulary.md', 'utf8')

const product = new Map([...readSources('src')].filter(([file]) => !/\.test\.tsx?$|\/testing\//.test(file)))

test('each word stands for a type or function that is there', () => {
  const names = rowsOf(vocabulary, 'in code').flatMap(([, , names = '']) => quoted(names))
  assert.ok(names.length > 60)
  const all = [...readSources('src').values(), ...readSources('test/support').values()].join('\n')
  const isThere = (name: string): boolean =>
    new RegExp(`^export (abstract )?(async )?(class|interface|type|function\\*?|const) ${name}\\b`, 'm').test(all)
  assert.deepEqual(
    names.filter((name) => !isThere(name)),
    [],
  )
})

test('no name has a word that we do not use', () => {
  assert.ok(bannedWords().length > 5)
  const found = findBanned(product, bannedWords(), keptNames())
  assert.deepEqual(
    found.map(
      ({ file, name, banned: { word, say } }) => `${file}: ${name}: not ${word}, say ${say}: docs/vocabulary.md`,
    ),
    [],
  )
})

test('a name that others hold on to is still there', () => {
  for (const { name, folders } of keptNames()) {
    for (const folder of folders) {
      const isThere = [...product].some(([file, text]) => file.startsWith(folder) && text.includes(name))
      assert.ok(isThere, `${name} in ${folder}`)
    }
  }
})

test('a banned word is found in names of every form, and nowhere else', () => {
  const banned = [{ word: 'door', say: 'listener', folders: ['src/a/'] }]
  const found = (text: string, file = 'src/a/b.ts') =>
    findBanned(new Map([[file, text]]), banned, []).map(({ name }) => name)
  assert.deepEqual(found('const openDoor = 1'), ['openDoor'])
  assert.deepEqual(found('class A { #doors = DOOR_MS }'), ['#doors', 'DOOR_MS'])
  assert.deepEqual(found('', 'src/a/agent-door.ts'), ['src/a/agent-door.ts'])
  assert.deepEqual(found("// a door\n/* a door */ const a = 'door' + `door ${b} door`, outdoors = 1"), [])
  assert.deepEqual(found('const a = `${door}`'), ['door'])
  assert.deepEqual(found('const door = 1', 'src/c/b.ts'), [])
  assert.deepEqual(
    findBanned(new Map([['src/a/b.ts', 'door']]), banned, [{ name: 'door', folders: ['src/a/b.ts'] }]),
    [],
  )
})

function bannedWords(): BannedWord[] {
  return rowsOf(vocabulary, 'in').map(([word = '', say = '', folders = '']) => ({
    word,
    say,
    folders: quoted(folders),
  }))
}

function keptNames() {
  const text = readFileSync('docs/internals/kept-names.md', 'utf8')
  return rowsOf(text, 'stands in').map(([name = '', , , folders = '']) => ({
    name: quoted(name)[0] ?? '',
    folders: quoted(folders),
  }))
}

/** The rows of all tables whose last column has this title. */
function rowsOf(text: string, last: string): string[][] {
  const tables = text
    .split(/\n\n/)
    .map((part) => part.split('\n').filter((line) => line.startsWith('| ') || line.startsWith('|-')))
  return tables.filter(([head = '']) => cellsOf(head).at(-1) === last).flatMap(([, , ...rows]) => rows.map(cellsOf))
}

function cellsOf(row: string): string[] {
  return row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())
}

function quoted(cell: string): string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, text = '']) => text)
}

/** The pictures on the pages: all of them exist, the suites of the dashboard take them, and they are small in total. */
import assert from 'node:assert/strict'
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { shown, shownFiles } from '../interop/page/pictures.ts'
import { readSources } from '../support/sources.ts'
import { readPage } from './page.ts'

const FOLDER = 'docs/pictures'
const MAX_BYTES = 600_000

const pages = ['README.md', ...globSync('docs/*.md')]
const named = pages.flatMap((page) =>
  [...readPage(page).matchAll(/(?:src|srcset)="([^"]+)"|!\[[^\]]*\]\(([^)]+)\)/g)].map(([, html, markdown]) =>
    join(dirname(page), html ?? markdown ?? ''),
  ),
)

test('every picture on a page exists, and every picture in the folder is on a page', () => {
  const kept = readdirSync(FOLDER).map((file) => join(FOLDER, file))
  assert.deepEqual([...new Set(named)].sort(), kept.sort())
})

test('each has an alternative text', () => {
  for (const page of pages) {
    for (const [image] of readPage(page).matchAll(/<img [^>]*>/g)) assert.match(image, /alt="[^"]{20,}"/, page)
  }
})

test('`npm run pictures` makes all of them: a suite takes each', () => {
  assert.deepEqual(readdirSync(FOLDER).sort(), shownFiles().sort())
  const suites = [...readSources('test/interop/page')].filter(([file]) => /\/(page|traffic)\.test\.ts$/.test(file))
  assert.equal(suites.length, 2)
  for (const [name] of shown) {
    const taken = suites.some(([, text]) => text.includes(`assertGoodInAllLooks('${name}')`))
    assert.ok(taken, `no suite takes ${name} in all looks`)
  }
})

test('all are WebP, and small in total', () => {
  const files = shownFiles().map((file) => readFileSync(join(FOLDER, file)))
  for (const file of files) assert.equal(file.toString('latin1', 0, 4) + file.toString('latin1', 8, 12), 'RIFFWEBP')
  const bytes = files.reduce((sum, { length }) => sum + length, 0)
  assert.ok(bytes <= MAX_BYTES, `${bytes} bytes`)
})

/** The kinds and modules that stand for the others on PostgreSQL take every way into the store that any of them takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resources } from '../../src/control-plane/resources/index.ts'
import type { Resource } from '../../src/control-plane/resources/resource.ts'
import { modules } from '../../src/modules/forms.ts'
import type { Module } from '../../src/modules/module.ts'
import { kindsOnPostgres, modulesOnPostgres } from './ways-to-the-store.ts'

/** Whether a part of a resource decides which statements run; the others decide what the rows hold. */
const partsOfResources: Readonly<Record<keyof Resource, boolean>> = {
  kind: false,
  noun: false,
  about: false,
  prefix: false,
  path: false,
  listKey: false,
  otherName: false,
  verbs: false,
  access: true,
  handlers: false,
  routes: false,
  commands: false,
  actions: false,
  parent: true,
  embeds: true,
  place: true,
  // They follow from the place.
  modules: false,
  mints: true,
  create: false,
  update: false,
  view: false,
  settle: false,
  price: true,
  renews: true,
  columns: false,
  filters: false,
  read: false,
  fact: true,
  // Every resource has these two, if only empty ones: edges and nested backends stand for them.
  claims: false,
  mentions: false,
  choose: true,
  make: true,
  secrets: true,
  clears: true,
  live: false,
}

const partsOfModules: Readonly<Record<keyof Module, boolean>> = {
  name: false,
  about: false,
  at: false,
  needs: false,
  reference: true,
  mentions: true,
  secrets: true,
  accept: true,
  price: true,
  spellings: true,
  shows: true,
  resolve: false,
}

test('no way of a kind into the store is missing on PostgreSQL', () => {
  const stored = resources.filter(({ verbs, handlers }) => verbs.includes('create') && !handlers?.create)
  const chosen = stored.filter(({ kind }) => Object.hasOwn(kindsOnPostgres, kind))
  assert.equal(chosen.length, Object.keys(kindsOnPostgres).length, 'each is a kind')
  const ways = (all: readonly Resource[]) => [
    ...waysOf(all, partsOfResources),
    ...all.flatMap(({ access, parent }) => [access, ...(parent ? [`parent in the ${parent.in}`] : [])]),
  ]
  assert.deepEqual(new Set(ways(chosen)), new Set(ways(stored)))
})

test('no way of a module into the store is missing on PostgreSQL', () => {
  const names = new Set(Object.keys(modulesOnPostgres).map((name) => name.split(' ')[1] ?? ''))
  const attached = modules.filter(({ at }) => Object.keys(at).length > 0)
  const chosen = attached.filter(({ name }) => names.has(name))
  assert.deepEqual(new Set(waysOf(chosen, partsOfModules)), new Set(waysOf(attached, partsOfModules)))
})

/** The parts that any of these has, among those that matter; an empty list is no part. */
function waysOf<Part extends string>(
  all: readonly Readonly<Partial<Record<Part, unknown>>>[],
  parts: Readonly<Record<Part, boolean>>,
): string[] {
  const matter = Object.entries<boolean>(parts).flatMap(([name, matters]) => (matters ? [name as Part] : []))
  return all.flatMap((each) => matter.filter((name) => !isEmpty(each[name])))
}

function isEmpty(part: unknown): boolean {
  return part === undefined || (Array.isArray(part) && part.length === 0)
}

/** Keeps the import arrows of the house: which room may import which, and what may come from outside. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { describe, test } from 'node:test'
import {
  arrowFaults,
  barrelFaults,
  cycleFaults,
  loadedFaults,
  packageFaults,
  pathFaults,
  roomFaults,
  type Sources,
  type Wall,
  wallFaults,
} from './support/arrows.ts'
import { findImports } from './support/imports.ts'
import { readSources } from './support/sources.ts'

const controlWall: Wall = {
  from: (room) => room.startsWith('control-plane/'),
  forbids: (room) => room.startsWith('data-plane/'),
}
/** What modules do to traffic is for data planes; the control plane has their forms. */
const formsWall: Wall = {
  from: (room) => room.startsWith('control-plane/'),
  forbids: (_, file) => /^src\/modules\/(\w+\/)?traffic\.ts$/.test(file),
}
const dataWall: Wall = {
  from: (room) => room.startsWith('data-plane/'),
  forbids: (room) => room.startsWith('control-plane/'),
  packages: ['fastify', 'kysely', 'pg'],
}
const agentWall: Wall = {
  from: (room) => room === 'agent',
  forbids: (room) => !['agent', 'link/wire', 'link/calls', 'link/options', 'lib'].includes(room),
  packages: ['fastify', 'kysely', 'pg'],
}

/** Of `lib/`, the page may have what runs in browsers too. */
const pageWall: Wall = {
  from: (room) => room === 'page',
  forbids: (room) => !['page', 'lib'].includes(room),
  packages: builtinModules.map((name) => `node:${name.replace(/^node:/, '')}`),
}

const rules: Record<string, (sources: Sources, exists: (path: string) => boolean) => string[]> = {
  'every file stands in a known room': roomFaults,
  'relative imports end in .ts and exist': pathFaults,
  'rooms import only along the arrows': arrowFaults,
  'libraries stay in their rooms': packageFaults,
  'of some libraries only the types are used': loadedFaults,
  'no files import each other in a circle': cycleFaults,
  'no file only passes on the exports of others': barrelFaults,
  'the wall of the control plane: it never reaches what carries traffic': (s) => wallFaults(s, controlWall),
  'the wall of the forms: the control plane never reaches what modules do to traffic': (s) => wallFaults(s, formsWall),
  'the wall of the data plane: what is stored reaches it through the link alone': (s) => wallFaults(s, dataWall),
  'the wall of the page: it reaches no server code, and nothing of Node': (s) => wallFaults(s, pageWall),
  'the wall of the agent: it never reaches server code or a heavy library': (s) => wallFaults(s, agentWall),
}

describe('the sources', () => {
  const sources = readSources('src')
  test('are found', () => assert.ok(sources.size > 5))
  for (const [rule, faults] of Object.entries(rules)) {
    test(rule, () => assert.deepEqual(faults(sources, existsSync), []))
  }
})

describe('the rules find', () => {
  const cases: { name: string; rule: string; files: Record<string, string>; fault?: RegExp }[] = [
    { name: 'an unknown room', rule: 'every file', files: { 'utils/a.ts': '' }, fault: /src\/utils\/a\.ts/ },
    { name: 'an unknown file at the top', rule: 'every file', files: { 'app.ts': '' }, fault: /src\/app\.ts/ },
    {
      name: 'a missing ending',
      rule: 'relative',
      files: { 'lib/a.ts': "import './b'", 'lib/b.ts': '' },
      fault: /\.\/b,/,
    },
    { name: 'a missing file', rule: 'relative', files: { 'lib/a.ts': "import './b.ts'" }, fault: /does not exist/ },
    { name: 'a computed import', rule: 'relative', files: { 'lib/a.ts': 'await import(name)' }, fault: /computes/ },
    {
      name: 'an arrow the wrong way',
      rule: 'rooms',
      files: { 'lib/a.ts': "import '../model/b.ts'" },
      fault: /lib may import nothing/,
    },
    {
      name: 'a type the wrong way',
      rule: 'rooms',
      files: { 'control-plane/store/a.ts': "import type { B } from '../api/b.ts'" },
      fault: /store may/,
    },
    {
      name: 'a lazy import the wrong way',
      rule: 'rooms',
      files: { 'link/wire/a.ts': "await import('../../agent/b.ts')" },
      fault: /wire may/,
    },
    {
      name: 'code that leans on a test',
      rule: 'rooms',
      files: { 'lib/a.ts': "import './b.test.ts'" },
      fault: /for tests/,
    },
    {
      name: 'code that leans on the harness',
      rule: 'rooms',
      files: { 'lib/a.ts': "import '../../test/b.ts'" },
      fault: /for tests/,
    },
    {
      name: 'nothing in an arrow along the chain',
      rule: 'rooms',
      files: { 'control-plane/api/a.ts': "import '../../lib/b.ts'" },
    },
    { name: 'nothing in a test that sees more', rule: 'rooms', files: { 'lib/a.test.ts': "import '../api/b.ts'" } },
    {
      name: 'a library elsewhere',
      rule: 'libraries',
      files: { 'data-plane/edge/a.ts': "import { sql } from 'kysely/x'" },
      fault: /only control-plane\/store\//,
    },
    {
      name: 'a scoped library elsewhere',
      rule: 'libraries',
      files: { 'control-plane/api/a.ts': "import '@bufbuild/cel'" },
      fault: /only modules\/policy\//,
    },
    {
      name: 'a library beside its one file',
      rule: 'libraries',
      files: { 'lib/a.ts': "import 'pino'" },
      fault: /lib\/log\/create-log\.ts/,
    },
    {
      name: 'nothing in a library at home',
      rule: 'libraries',
      files: { 'lib/log/create-log.ts': "import 'pino'", 'control-plane/api/a.ts': "import 'fastify'" },
    },
    {
      name: 'a library that is loaded for its types',
      rule: 'of some libraries',
      files: { 'lib/a.ts': "import { type TSchema, Type } from 'typebox'" },
      fault: /lib\/shape\/type\.ts/,
    },
    {
      name: 'a part of Node that is dear to import',
      rule: 'of some libraries',
      files: { 'control-plane/api/a.ts': "import { createServer } from 'node:http'" },
      fault: /lib\/http\/node-http\.ts/,
    },
    {
      name: 'nothing in its types alone',
      rule: 'of some libraries',
      files: { 'lib/a.ts': "import type { TSchema } from 'typebox'" },
    },
    {
      name: 'a circle of three',
      rule: 'no files import',
      files: {
        'lib/a.ts': "import './b.ts'",
        'lib/b.ts': "export { c } from './c.ts'",
        'lib/c.ts': "import { a } from './a.ts'",
      },
      fault: /^src\/lib\/a\.ts -> src\/lib\/b\.ts -> src\/lib\/c\.ts -> src\/lib\/a\.ts$/,
    },
    {
      name: 'nothing in a circle of types',
      rule: 'no files import',
      files: { 'lib/a.ts': "import './b.ts'", 'lib/b.ts': "import type { A } from './a.ts'" },
    },
    {
      name: 'a barrel',
      rule: 'no file only',
      files: { 'lib/a.ts': "/** All. */\nexport * from './b.ts'\n" },
      fault: /lib\/a\.ts/,
    },
    {
      name: 'a barrel in two steps',
      rule: 'no file only',
      files: { 'lib/a.ts': "import { b } from './b.ts'\nexport { b }" },
      fault: /lib\/a/,
    },
    {
      name: 'nothing in the registries',
      rule: 'no file only',
      files: { 'modules/forms.ts': "export * from './a.ts'" },
    },
    {
      name: 'nothing in a file with code',
      rule: 'no file only',
      files: { 'lib/a.ts': "export * from './b.ts'\nexport const c = 1" },
    },
    {
      name: 'the store two steps from the edge',
      rule: 'the wall of the data plane',
      files: {
        'data-plane/edge/a.ts': "import '../../modules/b.ts'",
        'modules/b.ts': "import type { C } from '../control-plane/store/c.ts'",
        'control-plane/store/c.ts': '',
      },
      fault: /^src\/data-plane\/edge\/a\.ts -> src\/modules\/b\.ts -> src\/control-plane\/store\/c\.ts$/,
    },
    {
      name: 'traffic two steps from the API',
      rule: 'the wall of the control plane',
      files: {
        'control-plane/api/a.ts': "import '../../link/planes/b.ts'",
        'link/planes/b.ts': "import type { C } from '../../data-plane/edge/c.ts'",
        'data-plane/edge/c.ts': '',
      },
      fault: /^src\/control-plane\/api\/a\.ts -> src\/link\/planes\/b\.ts -> src\/data-plane\/edge\/c\.ts$/,
    },
    {
      name: 'what a module does to traffic in the control plane',
      rule: 'the wall of the forms',
      files: {
        'control-plane/api/a.ts': "import '../../modules/b.ts'",
        'modules/b.ts': "import type { C } from './c/traffic.ts'",
        'modules/c/traffic.ts': '',
      },
      fault: /^src\/control-plane\/api\/a\.ts -> src\/modules\/b\.ts -> src\/modules\/c\/traffic\.ts$/,
    },
    {
      name: 'a plane that sees the other',
      rule: 'rooms import',
      files: { 'data-plane/tunnel/a.ts': "import '../../control-plane/store/b.ts'" },
      fault: /tunnel may/,
    },
    {
      name: 'a test double in the product',
      rule: 'rooms import',
      files: { 'lib/a.ts': "import './testing/b.ts'" },
      fault: /for tests/,
    },
    {
      name: 'Node two steps from the page',
      rule: 'the wall of the page',
      files: { 'page/a.tsx': "import '../lib/b.ts'", 'lib/b.ts': "import { gzip } from 'node:zlib'" },
      fault: /^src\/page\/a\.tsx -> src\/lib\/b\.ts -> node:zlib$/,
    },
    {
      name: 'the model in the agent',
      rule: 'the wall of the agent',
      files: { 'agent/a.ts': "import '../model/b.ts'" },
      fault: /model/,
    },
    {
      name: 'a heavy library two steps from the agent',
      rule: 'the wall of the agent',
      files: { 'agent/a.ts': "import '../lib/b.ts'", 'lib/b.ts': "import pg from 'pg'" },
      fault: /^src\/agent\/a\.ts -> src\/lib\/b\.ts -> pg$/,
    },
  ]
  for (const { name, rule, files, fault } of cases) {
    test(name, () => {
      const sources = new Map(Object.entries(files).map(([file, text]) => [`src/${file}`, text]))
      const [, faultsOf] = Object.entries(rules).find(([title]) => title.startsWith(rule)) ?? []
      const faults = faultsOf?.(sources, (path) => sources.has(path)) ?? ['there is no such rule']
      assert.equal(faults.length, fault ? 1 : 0, faults.join('\n'))
      if (fault) assert.match(faults[0] ?? '', fault)
    })
  }
})

describe('imports are found in', () => {
  const cases: Record<string, [source: string, ...found: string[]]> = {
    'all their forms': [
      `import 'a'; import b from "b"
       import * as c from 'c'
       import { d, type D } from 'd'
       import e, { type E } from 'e'
       import type F from 'f'
       import type { G } from 'g'
       import h from 'h' with { type: 'json' }
       export * from 'i'
       export * as j from 'j'
       export { k } from 'k'
       export type { L } from 'l'
       const m = await import('m')
       let n: import('n').N
       import {
         o,
       } from 'o'
       import type from 'p'`,
      ...['static b', 'static c', 'static d', 'static e', 'type f', 'type g', 'static h', 'static i', 'static j'],
      ...['static k', 'type l', 'static o', 'static p', 'static a', 'dynamic m', 'dynamic n'],
    ],
    'no comment': ["// import 'a'\n/* import 'b' */\n/** import 'c' */"],
    'no string': [`const a = "import 'a'"; const b = 'import "b"'; const c = 'it\\'s import "c"'`],
    'no template': ["const a = `import 'a' ${`import 'b' ${{ c: '}' }}`} import 'c'`\nimport 'd'", 'static d'],
    'code after a regular expression': ["const a = /['\"`]/.test(b)\nimport 'c'", 'static c'],
    'code after a division': ["const a = b / c; import 'd' // e / f", 'static d'],
    'code after a comment with a quote': ["// it's\nimport 'a'", 'static a'],
    'no property or longer name': ["a.import('b'); reimport('c'); import.meta.resolve('d')"],
    'no export of its own string': ["export const from = 'a'\nexport default 'b'"],
  }
  for (const [name, [source, ...found]] of Object.entries(cases)) {
    test(name, () => {
      const { imports } = findImports(source)
      assert.deepEqual(
        imports.map(({ kind, specifier }) => `${kind} ${specifier}`),
        found,
      )
    })
  }
})

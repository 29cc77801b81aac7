/** Calls the CEL library for what we do not implement: times and durations, formats, numbers of mixed kinds. */
import { createRequire } from 'node:module'
import type { CelFunc, CelValue } from '@bufbuild/cel'
import { cel as loadCel } from './cel.ts'
import { Fault } from './evaluation-frame.ts'
import type { Cel } from './tree.ts'
import { withoutStacks } from './without-stacks.ts'

const require = createRequire(import.meta.url)

export class Library {
  readonly cel: Cel
  readonly #funcs: ReturnType<Cel['celEnv']>['funcs']
  /** Runs `#pending` inside an evaluation of the library, since its functions work only there. */
  readonly #within: ReturnType<Cel['plan']>
  #pending: (() => unknown) | undefined

  constructor() {
    const cel = loadCel()
    this.cel = cel
    // Loaded with `require`, as the library itself is, so that both halves share their classes.
    const { strings } = require('@bufbuild/cel/ext') as typeof import('@bufbuild/cel/ext')
    this.#funcs = cel.celEnv({ funcs: [...strings] }).funcs
    const none = cel.celFunc('pending', [], cel.CelScalar.DYN, () => null)
    const pending = Object.create(none, { call: { value: () => this.#pending?.() } }) as CelFunc // `none` but for `call`
    this.#within = cel.plan(cel.celEnv({ funcs: [pending] }), cel.parse('pending()'))
  }

  has(name: string): boolean {
    return this.#funcs.find(name) !== undefined
  }

  /** Calls a function, or with a `target` a method, and returns a value or a `Fault`. */
  call(name: string, target: unknown, args: readonly unknown[]): unknown {
    const func = this.#funcs.find(name)
    if (!func) return new Fault(`there is no function ${name}`)
    // Callers pass values of CEL only.
    this.#pending = () =>
      func.call(0, target as CelValue | undefined, [...args] as CelValue[]) ?? this.#noOverload(name, target, args)
    // The library catches errors and returns them as values.
    const value = withoutStacks(() => this.#within())
    this.#pending = undefined
    return this.cel.isCelError(value) ? new Fault(value.message.slice(0, MAX_MESSAGE)) : value
  }

  timestamp(millis: number): unknown {
    return this.call('timestamp', undefined, [new Date(millis).toISOString()])
  }

  /** The type that a name such as `int` stands for when it is used as a value. */
  typeNamed(name: string): unknown {
    const { CelScalar, listType, mapType } = this.cel
    if (name === 'list') return listType(CelScalar.DYN)
    if (name === 'map') return mapType(CelScalar.DYN, CelScalar.DYN)
    return Object.values(CelScalar).find((type) => type.name === name)
  }

  #noOverload(name: string, target: unknown, args: readonly unknown[]): unknown {
    const types = [...(target === undefined ? [] : [target]), ...args].map((value) => this.typeName(value))
    return this.cel.celError(`\`${name}\` is not for ${types.join(', ')}`)
  }

  typeName(value: unknown): string {
    return this.cel.celType(value as CelValue).name // callers pass values of CEL only
  }
}

/** The longest message, in characters: those of the library may quote a long text. */
const MAX_MESSAGE = 200

/** Work that runs on another thread when it takes long: plain data in, plain data out. */

import { BadValue } from '../../lib/shape/check.ts'
import type { Done } from '../../lib/threads/serve-thread.ts'
import { BindRefusal, type EndpointRequest } from '../../model/endpoint.ts'
import { Refusal } from '../../model/errors.ts'
import { agentModules } from '../../modules/agent-options/options.ts'
import { modules } from '../../modules/forms.ts'
import type { ModuleConfig, Place } from '../../modules/module.ts'
import { formsOf } from '../../modules/spellings.ts'
import { resources } from '../resources/index.ts'
import type { Fields } from '../resources/resource.ts'

export type HeavyWork =
  | {
      readonly kind: 'read'
      readonly module: string
      readonly form: string
      readonly place: Place
      readonly at: string
      readonly given: ModuleConfig
    }
  | { readonly kind: 'bind'; readonly proto: EndpointRequest['proto']; readonly opts: EndpointRequest['opts'] }
  | { readonly kind: 'settle'; readonly resource: string; readonly fields: Fields }

/** The result, or how to make the error; `isGiven` means the document as it was sent, which is not copied back. */
export type HeavyResult =
  | { readonly value: unknown }
  | { readonly isGiven: true }
  | { readonly badValue: ConstructorParameters<typeof BadValue> }
  | { readonly refusal: ConstructorParameters<typeof Refusal> }
  | { readonly bindRefusal: ConstructorParameters<typeof BindRefusal> }

/** Does work whose outcome `outcomeOf` reads on the calling thread. */
export async function heavyResult(work: () => HeavyResult | Promise<HeavyResult>): Promise<Done> {
  try {
    return { result: await work() }
  } catch (error) {
    return { result: refusedWith(error) }
  }
}

export function doHeavyWork(work: HeavyWork): HeavyResult {
  switch (work.kind) {
    case 'read': {
      const { place, at, given } = work
      const module = modules.find(({ name }) => name === work.module)
      const form = module && formsOf(module, place).find(({ name }) => name === work.form)
      if (!form) throw new Error(`there is no form ${work.form} of ${work.module}`)
      const config = form.read(given, { place, at })
      return config === given ? { isGiven: true } : { value: config }
    }
    case 'bind': {
      const found = agentModules(work.proto, work.opts)
      if (found instanceof BindRefusal) throw found
      return { value: found }
    }
    case 'settle': {
      const resource = resources.find(({ kind }) => kind === work.resource)
      if (!resource?.price) throw new Error(`there is no resource ${work.resource} that is settled here`)
      // A resource with a price needs no surroundings.
      return { value: resource.settle(work.fields, {} as never) }
    }
  }
}

function refusedWith(error: unknown): HeavyResult {
  if (error instanceof BadValue) return { badValue: [error.field, error.kind, error.message] }
  if (error instanceof Refusal) {
    const { code, message, field, reason } = error
    return { refusal: [code, message, { field, reason }] }
  }
  if (error instanceof BindRefusal) return { bindRefusal: [error.ngrok, error.message] }
  throw error
}

/** The value of a result, on the calling thread; throws what the work threw. */
export function outcomeOf<T>(result: HeavyResult, given?: T): T {
  if ('isGiven' in result) return given as T // sent with such work
  if ('badValue' in result) throw new BadValue(...result.badValue)
  if ('refusal' in result) throw new Refusal(...result.refusal)
  if ('bindRefusal' in result) throw new BindRefusal(...result.bindRefusal)
  return result.value as T // what the other side made of this kind of work
}

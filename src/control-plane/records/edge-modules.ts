/** Replaces, gets and deletes one module of an edge or route (contract 4.7). */
import type { Sealer } from '../../lib/secrets/seal.ts'
import { Refusal } from '../../model/errors.ts'
import type { Link } from '../../model/ref.ts'
import type { Module, ModuleConfig } from '../../modules/module.ts'
import type { ModuleForm } from '../../modules/spellings.ts'
import type { Resource } from '../resources/resource.ts'
import type { Documents } from './check-documents.ts'
import type { Principal } from './find-caller.ts'
import { checkTogether, moduleWrite, openModules, replaceModules } from './module-rows.ts'
import { type ResourceTarget, visible } from './ownership.ts'
import { rootOf } from './records.ts'
import { attempt } from './retry-on-conflict.ts'
import { type ShowingModules, shownAt } from './shown-at.ts'

/** The module of a request, and its caller. */
export interface ModuleTarget {
  readonly resource: Resource
  readonly principal: Principal
  readonly target: ResourceTarget
  readonly module: Module
  /** The spelling that the caller uses. */
  readonly form: ModuleForm
}

interface EdgeModulesOptions extends ShowingModules {
  readonly sealer: Sealer
  readonly checks: Pick<Documents, 'readModule'>
}

export class EdgeModules {
  readonly #options: EdgeModulesOptions

  constructor(options: EdgeModulesOptions) {
    this.#options = options
  }

  /** Replaces a module as a whole and shows it; `input` has passed the schema of its form. */
  async put(asked: ModuleTarget, input: ModuleConfig, link: Link): Promise<unknown> {
    const { resource, principal, target, module, form } = asked
    const checking = { checks: this.#options.checks, principal }
    const write = await moduleWrite(checking, resource, { module, form, given: input, at: '' })
    await attempt(() =>
      this.#options.store.write(async (writer) => {
        const before = visible(resource, principal, target, await writer.lock(resource.kind, target.id))
        await replaceModules(writer, this.#options.sealer, resource, before, [write])
        writer.changed(...rootOf(resource, before))
      }),
    )
    return this.#shown(asked, write.config, link)
  }

  async get(asked: ModuleTarget, link: Link): Promise<unknown> {
    const { resource, principal, target, module, form } = asked
    const found = await this.#options.store.read((reader) => reader.resource(resource.kind, target.id))
    const stored = visible(resource, principal, target, found)
    const config = openModules(this.#options.sealer, resource, stored).get(module.name)
    if (!config) {
      const msg = `the module \`${form.name}\` of this ${resource.noun} is not set; PUT it first`
      throw new Refusal('MODULE_NOT_SET', msg)
    }
    return this.#shown(asked, config, link)
  }

  async #shown({ module, target, form }: ModuleTarget, config: ModuleConfig, link: Link): Promise<unknown> {
    const { id, parentId = null } = target
    return form.show(config, link, module.shows && (await shownAt({ id, parentId }, this.#options)))
  }

  /** D29: removing a module that is not set changes nothing and is no error. */
  async remove({ resource, principal, target, module }: ModuleTarget): Promise<void> {
    await this.#options.store.write(async (writer) => {
      const before = visible(resource, principal, target, await writer.lock(resource.kind, target.id))
      if (!before.modules.has(module.name)) return
      checkTogether(this.#options.sealer, resource, before, { without: module })
      await writer.removeModule(before.id, module.name)
      await writer.setReferences(before.id, module.name, [], false)
      writer.changed(...rootOf(resource, before))
    })
  }
}

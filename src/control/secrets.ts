/** Seals the secret fields of modules on their way into the store and opens them on their way out. */
import type { Sealer } from '../lib/seal.ts'
import type { Module, ModuleConfig } from '../modules/module.ts'

export function sealConfig(sealer: Sealer, module: Module, config: ModuleConfig): ModuleConfig {
  return mapSecrets(module, config, (value) => sealer.seal(JSON.stringify(value)))
}

export function openConfig(sealer: Sealer, module: Module, config: ModuleConfig): ModuleConfig {
  return mapSecrets(module, config, (sealed) => JSON.parse(sealer.open(String(sealed))) as unknown)
}

function mapSecrets(module: Module, config: ModuleConfig, change: (value: unknown) => unknown): ModuleConfig {
  const changed = (module.secrets ?? [])
    .filter((field) => config[field] !== undefined)
    .map((field) => [field, change(config[field])] as const)
  return { ...config, ...Object.fromEntries(changed) }
}

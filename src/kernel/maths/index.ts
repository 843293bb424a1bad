/** Functions of Math as device functions in the kernel language, by name and type. */
export const mathsTexts: Readonly<Record<string, { readonly f32?: string; readonly f64?: string }>> = {};

*** Settings ***
Documentation     GDB attaches, stops at a breakpoint, and knows the source.
Resource          trebuchet.resource
Test Setup        Board
Test Teardown     Test Teardown

*** Variables ***
${PORT}           3341

*** Keywords ***
Find Debugger
    FOR    ${name}    IN    gdb-multiarch    riscv64-unknown-elf-gdb    riscv64-elf-gdb
        ${found}=    Run Process    which    ${name}
        IF    ${found.rc} == 0    RETURN    ${name}
    END
    Skip    no GDB for RISC-V is here: apt-get install gdb-multiarch

*** Test Cases ***
Stops At A Breakpoint
    ${gdb}=    Find Debugger
    Execute Command    machine StartGdbServer ${PORT}
    ${done}=    Run Process    ${gdb}    -nx    -batch    ${ELF}
    ...    -ex    set architecture riscv:rv32    -ex    target remote :${PORT}
    ...    -ex    break network_print    -ex    continue    -ex    backtrace
    ...    timeout=60s
    Log    ${done.stdout} ${done.stderr}
    Should Match Regexp    ${done.stdout}    Breakpoint 1, (0x[0-9a-f]+ in )?network_print
    Should Match Regexp    ${done.stdout}    \\n#0 +(0x[0-9a-f]+ in )?network_print
    Should Match Regexp    ${done.stdout}    \\n#[1-9].* main

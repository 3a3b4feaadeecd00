*** Settings ***
Documentation     A job that the CPU starts: start, interrupt, done; with the loopback role's model.
Resource          trebuchet.resource
Test Setup        Loopback Board
Test Teardown     Test Teardown

*** Keywords ***
Job
    [Documentation]    The offsets are those of the standard layout (cores/roles/contract.py).
    [Arguments]    ${operand}    ${length}    ${result}    ${room}
    Write Word    ${ROLE}    0x2C    ${operand}
    Write Word    ${ROLE}    0x30    ${length}
    Write Word    ${ROLE}    0x34    ${result}
    Write Word    ${ROLE}    0x38    ${room}
    Write Word    ${ROLE}    0x08    1
    Write Word    ${ROLE}    0x0C    0
    Execute Command    emulation RunFor "0.01"

Prepared Board
    Start Emulation
    Wait For Line On Uart    ready
    Execute Command    pause
    # The firmware's interrupt routine would switch the line off.
    Execute Command    cpu IsHalted true
    Write Word    main_ram    0x100000    0x44332211
    Write Word    main_ram    0x100004    0x88776655

*** Test Cases ***
Runs A Job And Says Done
    Prepared Board
    Job    0x40100000    8    0x40100100    16
    Register Should Be    ${ROLE}    result_status    0
    Register Should Be    ${ROLE}    result_length    8
    Register Should Be    ${ROLE}    interrupt_status    1
    Register Should Be    ${ROLE}    busy    0
    Word Should Be    main_ram    0x100100    0x44332211
    Word Should Be    main_ram    0x100104    0x88776655

Interrupts When It May
    Prepared Board
    Write Word    ${ROLE}    0x10    1
    Write Word    ${ROLE}    0x14    0
    Job    0x40100001    4    0x40100200    16
    Register Should Be    ${ROLE}    interrupt_status    3
    Register Should Be    shell_irq    ev_status    1
    Word Should Be    main_ram    0x100200    0x55443322
    Write Word    ${ROLE}    0x18    3
    Write Word    ${ROLE}    0x1C    0
    Register Should Be    shell_irq    ev_status    0

Refuses What Does Not Fit
    Prepared Board
    Job    0x40100000    17    0x40100300    16
    # NO_ROOM of models/status.py
    Register Should Be    ${ROLE}    result_status    7
    Register Should Be    ${ROLE}    errors    1

Is Switched Off
    Prepared Board
    Write Word    ${ROLE}    0x20    0
    Job    0x40100000    8    0x40100100    16
    # STOPPED
    Register Should Be    ${ROLE}    result_status    5
